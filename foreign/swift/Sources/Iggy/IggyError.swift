// What calls throw.

internal import IggyNative

/// What a caller would do about an error.
public enum ErrorClass: String, Sendable, CaseIterable {
    /// The server cannot be reached, or the link broke: check the address, or wait.
    case connection
    /// Sign in, or sign in as somebody else.
    case authentication
    /// The user may not do this.
    case permission
    /// What was named does not exist.
    case notFound = "not_found"
    /// What was to be created exists.
    case alreadyExists = "already_exists"
    /// The call itself is wrong: fix its arguments.
    case invalidInput = "invalid_input"
    /// A limit was reached: wait, or ask for less.
    case limitReached = "limit_reached"
    /// The server did not take the call this time: the same call may succeed later.
    case unavailable
    /// Nobody can say whether the write was applied: resolve or abandon its operation.
    case uncertain
    /// The position, owner or epoch belongs to the past: look it up again.
    case stale
    /// The server failed.
    case server
    /// The client, producer, consumer or reader was closed.
    case closed
    /// The task was cancelled; a write may have been applied all the same.
    case cancelled
    /// The object was made before the process forked: make a new client.
    case inherited
    /// The client failed inside; please report it.
    case `internal`
}

/// Whether a write took effect.
public enum Outcome: String, Sendable {
    /// It did.
    case applied
    /// It did not.
    case notApplied = "not_applied"
    /// Nobody can say.
    case unknown
}

/// A call that did not bring what was asked for. Every throwing call of this package throws one, and nothing else.
public struct IggyError: Error, Sendable, Equatable {
    /// What a caller would do about it.
    public let errorClass: ErrorClass
    /// The code on the wire; 0 for errors that have none.
    public let code: UInt32
    /// The name of the code, as `stream_name_not_found`; that of the class where there is no code.
    public let name: String
    /// What was wrong and what is allowed, for people.
    public let message: String
    /// Whether the same call may succeed later.
    public let retryable: Bool
    /// Whether a write took effect.
    public let outcome: Outcome
    /// The operation to resolve or abandon, when the outcome is unknown.
    public let operation: UInt64?
    /// The partition it concerns, when it is about reading one.
    public let partitionID: UInt32?
}

extension IggyError: CustomStringConvertible {
    public var description: String { "\(name): \(message)" }
}

extension IggyError {
    init(_ failure: NativeFailure) {
        errorClass = ErrorClass(rawValue: failure.`class`) ?? .internal
        code = failure.code
        name = failure.name
        message = failure.message
        retryable = failure.retryable
        outcome = Outcome(rawValue: failure.outcome) ?? .unknown
        operation = failure.operation
        partitionID = failure.partitionId
    }

    /// What the native library threw.
    init(_ error: any Error) {
        switch error {
        case NativeError.Failed(let failure): self.init(failure)
        case let error as IggyError: self = error
        default: self.init(.internal, "the client failed inside; please report this: \(error)", outcome: .unknown)
        }
    }

    init(_ errorClass: ErrorClass, _ message: String, outcome: Outcome = .notApplied) {
        self.errorClass = errorClass
        code = 0
        name = errorClass.rawValue
        self.message = message
        retryable = false
        self.outcome = outcome
        operation = nil
        partitionID = nil
    }
}
