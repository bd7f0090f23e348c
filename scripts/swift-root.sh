# How Swift gets onto a machine that has none, and how a command gets to it. Sourced after tools.sh, never run.

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else
        fail "root is needed for: $*"
    fi
}

# Where it is put, and the release of Debian it comes from.
swift_root=$tools/swift
swift_suite=trixie

# The Swift of this machine when it is 6 or later; nothing otherwise.
swift_of_machine() {
    local found
    found=$(command -v swift) || return 0
    swift --version 2>/dev/null | grep -qE 'Swift version ([6-9]|[1-9][0-9])' && printf '%s' "$found"
}

# in_swift FOLDER COMMAND...: runs a command in a folder where Swift is. In that root only that
# folder, what is named by IGGY_SWIFT_SEES and nothing else of the machine are there, at the same paths; they leave it when
# the command ends, however it does.
in_swift() {
    local folder=$1
    shift
    if [ -n "$(swift_of_machine)" ]; then (cd "$folder" && "$@"); return; fi
    [ -e "$swift_root/.complete" ] || fail "Swift is missing; run scripts/setup swift"
    local name passed=(HOME=/tmp LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin)
    for name in $(compgen -e); do
        case $name in IGGY_* | PKG_CONFIG_PATH | LD_LIBRARY_PATH) passed+=("$name=${!name}") ;; esac
    done
    # shellcheck disable=SC2016 # The inner shell expands them.
    as_root unshare --mount --propagation private bash -euc '
        root=$1 user=$2 folder=$3 sees=$4
        shift 4
        mount -t proc proc "$root/proc"
        for each in "$folder" $sees; do
            mkdir -p "$root$each"
            mount --bind "$each" "$root$each"
        done
        exec chroot --userspec="$user" "$root" /bin/sh -c "cd \"\$0\" && exec env -i \"\$@\"" "$folder" "$@"
    ' in_swift "$swift_root" "$(id -u):$(id -g)" "$folder" "${IGGY_SWIFT_SEES:-}" "${passed[@]}" "$@"
}

# Swift 6 in a root of its own: the packages of a later Debian, whose C library is newer than that of this machine. A Swift
# that the machine has is used as it is. Everything comes from where this machine's own packages come from.
install_swift() {
    [ -n "$(swift_of_machine)" ] || [ -e "$swift_root/.complete" ] && return
    command -v apt-get >/dev/null || fail "please install Swift 6 first (no apt-get here)"
    say "making a root with Swift"
    if ! command -v debootstrap >/dev/null; then
        as_root apt-get update -qq
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
    fi
    local stage=$swift_root.making
    as_root rm -rf --one-file-system "$stage" "$swift_root"
    mkdir -p "$(dirname "$stage")"
    as_root env STAGE="$stage" SUITE="$swift_suite" unshare --mount --propagation private bash -euo pipefail -c '
        mirror=$(sed -n "s/^URIs: *//p" /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -1)
        debootstrap --variant=minbase "$SUITE" "$STAGE" "${mirror:-https://deb.debian.org/debian}" >/dev/null
        cp /etc/apt/apt.conf.d/99* "$STAGE/etc/apt/apt.conf.d/" 2>/dev/null || true
        cp /etc/resolv.conf /etc/hosts "$STAGE/etc/"
        mount -t proc proc "$STAGE/proc"
        export DEBIAN_FRONTEND=noninteractive
        chroot "$STAGE" apt-get update -qq
        chroot "$STAGE" apt-get install -y -qq --no-install-recommends \
            swiftlang libc6-dev libstdc++-14-dev pkg-config git ca-certificates >/dev/null
        chroot "$STAGE" apt-get clean
        mkdir -p "$STAGE/work"'
    as_root touch "$stage/.complete"
    as_root mv "$stage" "$swift_root"
}
