// Functions of the application that the client calls, on its own threads.

internal import IggyNative

final class CalledPartitioner: NativePartitioner {
    private let choose: Partitioner

    init?(_ choose: Partitioner?) {
        guard let choose else { return nil }
        self.choose = choose
    }

    func choose(stream: String, topic: String, messages: NativeBatch) throws -> UInt32 {
        do {
            return try choose(stream, topic, MessageList(batch: Batch(messages)))
        } catch {
            throw NativeThrown.Thrown(reason: String(describing: error))
        }
    }
}

final class CalledListener: NativeListener {
    private let hear: @Sendable (IggyError) -> Void

    init?(_ hear: (@Sendable (IggyError) -> Void)?) {
        guard let hear else { return nil }
        self.hear = hear
    }

    func hear(failure: NativeFailure) { hear(IggyError(failure)) }
}
