// Calls of the native library: a cancelled task gives its call up, and whatever goes wrong is an `IggyError`.

import Foundation
internal import IggyNative

/// Runs a call that waits. It is awaited to its end even when the task is cancelled, so that nothing that was read is lost.
func awaiting<T: Sendable>(
    isolation: isolated (any Actor)? = #isolation,
    _ body: (NativeCall) async throws -> T
) async throws(IggyError) -> T {
    let call = NativeCall()
    do {
        return try await withTaskCancellationHandler {
            try await body(call)
        } onCancel: {
            call.cancel()
        }
    } catch {
        throw IggyError(error)
    }
}

/// Runs a call that does not wait.
func calling<T>(_ body: () throws -> T) throws(IggyError) -> T {
    do {
        return try body()
    } catch {
        throw IggyError(error)
    }
}

/// Whole microseconds, rounded down; what is negative stays so and is refused where it arrives.
func micros(_ duration: Duration) -> Int64 {
    let (seconds, attoseconds) = duration.components
    let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
    if overflow { return seconds < 0 ? .min : .max }
    return whole.addingReportingOverflow(attoseconds / 1_000_000_000_000).partialValue
}


struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

/// `user_id` as `userID`.
private func swiftName(_ name: String) -> String {
    let parts = name.split(separator: "_")
    guard let first = parts.first else { return name }
    return parts.dropFirst().reduce(into: String(first)) { result, part in
        result += part == "id" ? "ID" : part.prefix(1).uppercased() + part.dropFirst()
    }
}

/// Reads what an operation answered.
func decoded<T: Decodable>(_ text: String, as type: T.Type = T.self) throws(IggyError) -> T {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .custom { path in AnyKey(stringValue: swiftName(path.last?.stringValue ?? "")) }
    do {
        return try decoder.decode(type, from: Data(text.utf8))
    } catch {
        throw IggyError(.internal, "this answer is not understood: \(text): \(error)", outcome: .unknown)
    }
}
