// User headers: typed values by typed keys.

import Foundation

/// The kind of a header.
public struct HeaderKind: RawRepresentable, Sendable, Hashable {
    /// 1 to 255; values above 15 are of a later version and passed on.
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let raw = HeaderKind(rawValue: 1)
    public static let string = HeaderKind(rawValue: 2)
    public static let bool = HeaderKind(rawValue: 3)
    public static let int8 = HeaderKind(rawValue: 4)
    public static let int16 = HeaderKind(rawValue: 5)
    public static let int32 = HeaderKind(rawValue: 6)
    public static let int64 = HeaderKind(rawValue: 7)
    public static let int128 = HeaderKind(rawValue: 8)
    public static let uint8 = HeaderKind(rawValue: 9)
    public static let uint16 = HeaderKind(rawValue: 10)
    public static let uint32 = HeaderKind(rawValue: 11)
    public static let uint64 = HeaderKind(rawValue: 12)
    public static let uint128 = HeaderKind(rawValue: 13)
    public static let float32 = HeaderKind(rawValue: 14)
    public static let float64 = HeaderKind(rawValue: 15)
}

/// A key or a value of a header: 1 to 255 bytes with their kind. Others are refused when they are sent.
public struct HeaderValue: Sendable, Hashable {
    /// What the bytes are.
    public let kind: HeaderKind
    /// The bytes, lowest first.
    public let bytes: [UInt8]

    /// From the bytes of a kind, lowest first.
    public init(kind: HeaderKind, bytes: some Sequence<UInt8>) {
        self.kind = kind
        self.bytes = Array(bytes)
    }

    private init(_ kind: HeaderKind, _ number: some FixedWidthInteger) {
        self.init(kind: kind, bytes: withUnsafeBytes(of: number.littleEndian, Array.init))
    }

    public static func raw(_ bytes: some Sequence<UInt8>) -> Self { Self(kind: .raw, bytes: bytes) }
    public static func string(_ text: String) -> Self { Self(kind: .string, bytes: text.utf8) }
    public static func bool(_ value: Bool) -> Self { Self(.bool, UInt8(value ? 1 : 0)) }
    public static func int8(_ value: Int8) -> Self { Self(.int8, value) }
    public static func int16(_ value: Int16) -> Self { Self(.int16, value) }
    public static func int32(_ value: Int32) -> Self { Self(.int32, value) }
    public static func int64(_ value: Int64) -> Self { Self(.int64, value) }
    public static func uint8(_ value: UInt8) -> Self { Self(.uint8, value) }
    public static func uint16(_ value: UInt16) -> Self { Self(.uint16, value) }
    public static func uint32(_ value: UInt32) -> Self { Self(.uint32, value) }
    public static func uint64(_ value: UInt64) -> Self { Self(.uint64, value) }
    public static func float32(_ value: Float) -> Self { Self(.float32, value.bitPattern) }
    public static func float64(_ value: Double) -> Self { Self(.float64, value.bitPattern) }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    public static func int128(_ value: Int128) -> Self { Self(.int128, value) }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    public static func uint128(_ value: UInt128) -> Self { Self(.uint128, value) }

    private func number<N: FixedWidthInteger>(_ kind: HeaderKind) -> N? {
        guard self.kind == kind, bytes.count == MemoryLayout<N>.size else { return nil }
        return bytes.reversed().reduce(N.zero) { $0 << 8 | N(truncatingIfNeeded: $1) }
    }

    /// The text of a string; nil for other kinds, as all that follow.
    public var string: String? { kind == .string ? String(decoding: bytes, as: UTF8.self) : nil }
    public var bool: Bool? { number(.bool).map { (byte: UInt8) in byte != 0 } }
    public var int8: Int8? { number(.int8) }
    public var int16: Int16? { number(.int16) }
    public var int32: Int32? { number(.int32) }
    public var int64: Int64? { number(.int64) }
    public var uint8: UInt8? { number(.uint8) }
    public var uint16: UInt16? { number(.uint16) }
    public var uint32: UInt32? { number(.uint32) }
    public var uint64: UInt64? { number(.uint64) }
    public var float32: Float? { number(.float32).map(Float.init(bitPattern:)) }
    public var float64: Double? { number(.float64).map(Double.init(bitPattern:)) }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    public var int128: Int128? { number(.int128) }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    public var uint128: UInt128? { number(.uint128) }
}

extension HeaderValue: ExpressibleByStringInterpolation {
    public init(stringLiteral text: String) { self = .string(text) }
}

extension HeaderValue: ExpressibleByBooleanLiteral {
    public init(booleanLiteral value: Bool) { self = .bool(value) }
}

/// Headers of a message. A key is mostly text: `["source": "web"]`.
public typealias Headers = [HeaderValue: HeaderValue]

extension Headers {
    /// One after the other: kind, length in two bytes, bytes; of a key and of its value.
    var encoded: [UInt8] {
        var out: [UInt8] = []
        for (key, value) in self {
            for part in [key, value] {
                let length = UInt16(clamping: part.bytes.count)
                out += [part.kind.rawValue, UInt8(length & 0xff), UInt8(length >> 8)]
                out += part.bytes.prefix(Int(length))
            }
        }
        return out
    }

    init(encoded: Data) {
        self.init()
        var rest = Array(encoded)[...]
        func take() -> HeaderValue? {
            guard rest.count >= 3 else { return nil }
            let (kind, low, high) = (rest.removeFirst(), rest.removeFirst(), rest.removeFirst())
            let bytes = rest.prefix(Int(low) | Int(high) << 8)
            rest = rest.dropFirst(bytes.count)
            return HeaderValue(kind: HeaderKind(rawValue: kind), bytes: bytes)
        }
        while let key = take(), let value = take() { self[key] = value }
    }
}
