// Names of what there is.

internal import IggyNative

/// A stream, topic, group or user: by its name, or by its number.
public enum Identifier: Sendable, Hashable {
    /// A name of 1 to 255 bytes.
    case named(String)
    /// A number.
    case numeric(UInt32)
}

extension Identifier: ExpressibleByStringInterpolation {
    public init(stringLiteral name: String) { self = .named(name) }
}

extension Identifier: ExpressibleByIntegerLiteral {
    public init(integerLiteral number: UInt32) { self = .numeric(number) }
}

extension Identifier: CustomStringConvertible {
    public var description: String {
        switch self {
        case .named(let name): name
        case .numeric(let number): String(number)
        }
    }
}

extension Identifier: SettingValue {
    var setting: String {
        switch self {
        case .named(let name): name.setting
        case .numeric(let number): number.setting
        }
    }

    var native: NativeId {
        switch self {
        case .named(let name): .name(name: name)
        case .numeric(let number): .number(number: number)
        }
    }
}

/// Who reads, and whose offsets are stored.
public enum Consumer: Sendable, Hashable {
    /// A consumer of its own.
    case single(Identifier)
    /// A consumer group.
    case group(Identifier)
    /// A consumer whose offsets something else keeps.
    case external(Identifier)

    /// Its name or number.
    public var id: Identifier {
        switch self {
        case .single(let id), .group(let id), .external(let id): id
        }
    }

    /// Whether it is a group.
    public var isGroup: Bool {
        if case .group = self { true } else { false }
    }
}

extension Consumer: ExpressibleByStringInterpolation {
    public init(stringLiteral name: String) { self = .single(.named(name)) }
}

extension Consumer: ExpressibleByIntegerLiteral {
    public init(integerLiteral number: UInt32) { self = .single(.numeric(number)) }
}

extension Consumer: SettingValue {
    var setting: String {
        let kind = switch self {
        case .single: "consumer"
        case .group: "group"
        case .external: "external"
        }
        return Settings().with("id", id).with("kind", kind).setting
    }

    var native: NativeConsumerId {
        switch self {
        case .single(let id): .alone(id: id.native)
        case .group(let id): .group(id: id.native)
        case .external(let id): .external(id: id.native)
        }
    }
}

/// The id of a message, of 128 bits. The client makes one when it is 0.
public struct MessageID: Sendable, Hashable {
    /// The lower half.
    public var low: UInt64
    /// The upper half.
    public var high: UInt64

    /// From its halves.
    public init(high: UInt64 = 0, low: UInt64) {
        self.high = high
        self.low = low
    }
}

extension MessageID: ExpressibleByIntegerLiteral {
    public init(integerLiteral low: UInt64) { self.init(low: low) }
}

extension MessageID: CustomStringConvertible {
    /// In hexadecimal digits, 32 of them.
    public var description: String {
        [high, low].map { half in
            let digits = String(half, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }
}
