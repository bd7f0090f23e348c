// Arguments and settings as the native library takes them: JSON.

import Foundation

/// What may stand for a setting.
protocol SettingValue {
    /// As JSON.
    var setting: String { get }
}

/// Settings by name; what is nil is left out and has the default of the client.
struct Settings: SettingValue {
    private var members: [String] = []

    func with(_ name: String, _ value: (any SettingValue)?) -> Settings {
        guard let value else { return self }
        var copy = self
        copy.members.append("\(name.setting):\(value.setting)")
        return copy
    }

    var setting: String { "{\(members.joined(separator: ","))}" }
}

extension String: SettingValue {
    var setting: String {
        var quoted = "\""
        for scalar in unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\u{0}"..."\u{1f}":
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}

extension Bool: SettingValue {
    var setting: String { self ? "true" : "false" }
}

extension SettingValue where Self: BinaryInteger {
    var setting: String { String(self) }
}

extension Int: SettingValue {}
extension Int64: SettingValue {}
extension UInt8: SettingValue {}
extension UInt16: SettingValue {}
extension UInt32: SettingValue {}
extension UInt64: SettingValue {}

extension Duration: SettingValue {
    var setting: String { micros(self).setting }
}

extension Data: SettingValue {
    var setting: String { base64EncodedString().setting }
}

extension Array: SettingValue where Element: SettingValue {
    var setting: String { "[\(map(\.setting).joined(separator: ","))]" }
}

extension Dictionary: SettingValue where Key == String, Value: SettingValue {
    var setting: String { "{\(map { "\($0.key.setting):\($0.value.setting)" }.joined(separator: ","))}" }
}
