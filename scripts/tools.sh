# Versions and places of the tools that the scripts use. Sourced, never run.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Under target/, so that a fresh clone is clean and a cached build keeps them.
tools=$repository/target/tools

cargo_deny_version=0.20.2
cbindgen_version=0.29.4
cargo_fuzz_version=0.13.2
# The published command line that bdd/interop drives; its client crate is pinned in bdd/interop/Cargo.lock.
published_cli_version=0.14.1-edge.7
published_cli=$tools/published/bin/iggy
# Both are made of the same crates with the same settings, so the second build takes most of the first as it is.
published_build=$repository/target/published

# rustup installs itself here when the machine has no Rust yet.
export PATH=$tools/bin:$tools/node/bin:${CARGO_HOME:-$HOME/.cargo}/bin:$PATH

# What scripts/setup installs where the machine has no Node.js, or one that is too old.
node_version=22.20.0

# The Python that builds and tests the Python package.
python_environment=$tools/python

say() { printf '\033[1m%s\033[0m\n' "$*" >&2; }
fail() { printf '%s\n' "$*" >&2; exit 1; }

# need TOOL: ends the script when the tool is missing, because a check that did not run must not look like one that passed.
need() { command -v "$1" >/dev/null || fail "$1 is missing; run scripts/setup"; }

# duration SECONDS: as 1m05s
duration() { printf '%dm%02ds' $(($1 / 60)) $(($1 % 60)); }

# Where libclang is, which reads the headers of PHP.
libclang_folder() {
    local found
    for found in "${LIBCLANG_PATH:-}" /usr/lib/llvm-*/lib; do
        if compgen -G "$found/libclang*.so*" >/dev/null; then printf '%s' "$found"; return; fi
    done
    return 1
}

# The headers that libclang itself brings, such as stddef.h.
clang_headers() { compgen -G "$(libclang_folder)/clang/*/include/stddef.h"; }

# The version of PHP that an extension is built for, as 8.2
php_version() { php -n -r 'echo PHP_MAJOR_VERSION, ".", PHP_MINOR_VERSION;'; }

# Everything of the workspace. The PHP extension is a feature, so that a plain build of it all needs no PHP; so is what
# writes the Swift side of the Swift library.
everything=(--workspace --features iggy-php/extension,iggy-swift/bindings)
if libclang=$(libclang_folder); then export LIBCLANG_PATH=$libclang; fi
