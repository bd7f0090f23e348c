// How a client reaches and treats its server.

import Foundation

/// End-to-end encryption of payloads and headers, with a key of 32 bytes.
public enum Encryption: Sendable, Hashable {
    /// AES-256-GCM.
    case aes256Gcm(key: Data)
    /// AES-256-GCM-SIV: a nonce that repeats by accident costs less.
    case aes256GcmSiv(key: Data)
}

extension Encryption: SettingValue {
    var setting: String {
        switch self {
        case .aes256Gcm(let key): Settings().with("cipher", "aes-256-gcm").with("key", key).setting
        case .aes256GcmSiv(let key): Settings().with("cipher", "aes-256-gcm-siv").with("key", key).setting
        }
    }
}

/// Encrypts the link.
public struct TLS: Sendable, Hashable {
    /// The name the certificate must be for. Default that of the address.
    public var domain: String?
    /// A file of certificates to trust besides those of the system, in PEM.
    public var caFile: String?
    /// Default true.
    public var validateCertificate: Bool?

    /// With the defaults of the client for what is nil.
    public init(domain: String? = nil, caFile: String? = nil, validateCertificate: Bool? = nil) {
        self.domain = domain
        self.caFile = caFile
        self.validateCertificate = validateCertificate
    }
}

extension TLS: SettingValue {
    var setting: String {
        Settings().with("domain", domain).with("ca_file", caFile).with("validate_certificate", validateCertificate)
            .setting
    }
}

/// Chooses the partition of a send. It is called on threads of the client, from several at once, and must not block; what
/// it throws fails the send.
public typealias Partitioner = @Sendable (_ streamID: String, _ topicID: String, _ messages: MessageList) throws -> UInt32

/// How a client reaches and treats its server. Each setting overrides what the connection string says; nil leaves it, or
/// the default.
public struct ClientConfiguration: Sendable {
    /// `iggy://user:password@host:port?key=value`, or with a token instead of user and password.
    public var connectionString: String?
    /// `host:port`, IPv6 in brackets. Default 127.0.0.1:8090.
    public var serverAddress: String?
    /// With `password`, who signs in when the client connects.
    public var username: String?
    /// With `username`.
    public var password: String?
    /// A personal access token, instead of `username` and `password`.
    public var token: String?
    /// Default plain TCP.
    public var tls: TLS?
    /// Whether small frames are sent at once. Default true.
    public var noDelay: Bool?
    /// Passes over all nodes before a connect gives up. Default unlimited.
    public var reconnectionMaxRetries: UInt32?
    /// Ceiling of the first random pause between passes; it doubles up to 10 s. Default 1 s.
    public var reconnectionInterval: Duration?
    /// A link that held so long starts again with the first pause. Default 5 s.
    public var reestablishAfter: Duration?
    /// Time between two pings. Default 5 s.
    public var heartbeatInterval: Duration?
    /// Deadline of a call that names none; polls have their wait and 10 s. Default 30 s.
    public var requestTimeout: Duration?
    /// Writes under way or unresolved at once, 1 or more. Default 256.
    public var maxPendingOperations: UInt32?
    /// Bytes of their frames. Default 64 MiB.
    public var maxPendingOperationBytes: UInt32?
    /// Largest request in bytes. Default 64 MiB.
    public var maxFrameBytes: UInt32?
    /// Encrypts what is sent and decrypts what is read. Default none.
    public var encryption: Encryption?
    /// Chooses the partition of every send. Default none.
    public var partitioner: Partitioner?

    /// With nothing but defaults, or what a connection string says.
    public init(connectionString: String? = nil) { self.connectionString = connectionString }
}

extension ClientConfiguration: SettingValue {
    var setting: String {
        Settings()
            .with("connection_string", connectionString)
            .with("server_address", serverAddress)
            .with("username", username)
            .with("password", password)
            .with("token", token)
            .with("tls", tls)
            .with("nodelay", noDelay)
            .with("reconnection_max_retries", reconnectionMaxRetries)
            .with("reconnection_interval", reconnectionInterval)
            .with("reestablish_after", reestablishAfter)
            .with("heartbeat_interval", heartbeatInterval)
            .with("request_timeout", requestTimeout)
            .with("max_pending_operations", maxPendingOperations)
            .with("max_pending_operation_bytes", maxPendingOperationBytes)
            .with("max_frame_bytes", maxFrameBytes)
            .with("encryption", encryption)
            .setting
    }
}
