/**
 * @file
 * The client core for C.
 *
 * Objects are opaque, made by one function and freed by another; freeing NULL does nothing. Every object may be used
 * from many threads at once, except that nothing may be freed while another thread uses it, and that IggyMessages,
 * IggyHeaders and IggyReply belong to one thread at a time.
 *
 * A function that waits takes a callback and returns at once. The callback is called exactly once for each call, on a
 * thread of the client (before the function returns where there is no such thread), with either a failure or a reply,
 * which it owns and frees. It must not block and must not let an exception through. Cancelling a call makes its end
 * come sooner; it does not make the callback stay away.
 *
 * A function that does not wait says what went wrong through its last argument: a failure to free, or NULL. That
 * argument itself may be NULL.
 *
 * Text is UTF-8 with a length and without an end mark, and is copied. What is returned as text or bytes lives as long as
 * the object it was asked of.
 *
 * The library is built to unwind: a panic inside becomes a failure of the class IGGY_CLASS_INTERNAL.
 */

#ifndef IGGY_H
#define IGGY_H

/* Written by cbindgen from bindings/c. Change it there: scripts/cpp header writes this file again. */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/** A value, borrowed from the reply it is in. */
typedef struct IggyValue IggyValue;

/**
 * The kind of a consumer of its own.
 */
#define IGGY_CONSUMER_ALONE 0

/**
 * The kind of a consumer group.
 */
#define IGGY_CONSUMER_GROUP 1

/**
 * The kind of a consumer whose offsets something else keeps.
 */
#define IGGY_CONSUMER_EXTERNAL 2

/**
 * Room for why a partitioner failed, its end mark included.
 */
#define IGGY_REASON_SIZE 512

/**
 * At the oldest message.
 */
#define IGGY_START_FIRST 0

/**
 * At the newest messages.
 */
#define IGGY_START_LAST 1

/**
 * After the stored offset of the consumer.
 */
#define IGGY_START_NEXT 2

/**
 * At the offset that the value is.
 */
#define IGGY_START_OFFSET 3

/**
 * At the time that the value is, in microseconds since the Unix epoch.
 */
#define IGGY_START_TIMESTAMP 4

/**
 * What a caller would do about a failure.
 */
typedef enum {
    /**
     * The server cannot be reached, or the link broke: check the address, or wait.
     */
    IGGY_CLASS_CONNECTION = 0,
    /**
     * Sign in, or sign in as somebody else.
     */
    IGGY_CLASS_AUTHENTICATION = 1,
    /**
     * The user may not do this.
     */
    IGGY_CLASS_PERMISSION = 2,
    /**
     * What was named does not exist.
     */
    IGGY_CLASS_NOT_FOUND = 3,
    /**
     * What was to be created exists.
     */
    IGGY_CLASS_ALREADY_EXISTS = 4,
    /**
     * The call itself is wrong: fix its arguments.
     */
    IGGY_CLASS_INVALID_INPUT = 5,
    /**
     * A limit was reached: wait, or ask for less.
     */
    IGGY_CLASS_LIMIT_REACHED = 6,
    /**
     * The server did not take the call this time: the same call may succeed later.
     */
    IGGY_CLASS_UNAVAILABLE = 7,
    /**
     * Nobody can say whether the write was applied: resolve or abandon its operation.
     */
    IGGY_CLASS_UNCERTAIN = 8,
    /**
     * The position, owner or epoch belongs to the past: look it up again.
     */
    IGGY_CLASS_STALE = 9,
    /**
     * The server failed.
     */
    IGGY_CLASS_SERVER = 10,
    /**
     * The client, producer, consumer or reader was closed.
     */
    IGGY_CLASS_CLOSED = 11,
    /**
     * The call was given up; a write may have been applied all the same.
     */
    IGGY_CLASS_CANCELLED = 12,
    /**
     * The object was made before the process forked: make a new client.
     */
    IGGY_CLASS_INHERITED = 13,
    /**
     * The client failed inside; please report it.
     */
    IGGY_CLASS_INTERNAL = 14,
} IggyClass;

/**
 * What a value is.
 */
typedef enum {
    /**
     * Nothing, or no value at all.
     */
    IGGY_VALUE_KIND_NULL = 0,
    /**
     * true or false.
     */
    IGGY_VALUE_KIND_BOOL = 1,
    /**
     * A whole number of 0 or more.
     */
    IGGY_VALUE_KIND_UNSIGNED = 2,
    /**
     * A whole number below 0.
     */
    IGGY_VALUE_KIND_SIGNED = 3,
    /**
     * A number with a fraction.
     */
    IGGY_VALUE_KIND_FLOAT = 4,
    /**
     * Text.
     */
    IGGY_VALUE_KIND_TEXT = 5,
    /**
     * A list of values.
     */
    IGGY_VALUE_KIND_LIST = 6,
    /**
     * Values by name.
     */
    IGGY_VALUE_KIND_OBJECT = 7,
} IggyValueKind;

/**
 * Messages of one partition that were read, in order.
 */
typedef struct IggyBatch IggyBatch;

/**
 * A call under way.
 */
typedef struct IggyCall IggyCall;

/**
 * A position to commit: every message up to its offset was processed.
 */
typedef struct IggyCheckpoint IggyCheckpoint;

/**
 * A client. One serves any number of calls at once.
 */
typedef struct IggyClient IggyClient;

/**
 * Reads message by message: named partitions, or those a group assigns to this member. Calls that read wait for each
 * other; commits and seeks wait for nobody.
 */
typedef struct IggyConsumer IggyConsumer;

/**
 * A subscription to events. One that falls 64 events behind loses the oldest.
 */
typedef struct IggyEvents IggyEvents;

/**
 * A call that did not bring what was asked for.
 */
typedef struct IggyFailure IggyFailure;

/**
 * Headers of a message, or of several.
 */
typedef struct IggyHeaders IggyHeaders;

/**
 * Messages that a partitioner looks at.
 */
typedef struct IggyMessageList IggyMessageList;

/**
 * Messages to send, in order.
 */
typedef struct IggyMessages IggyMessages;

/**
 * Sends messages to one topic.
 */
typedef struct IggyProducer IggyProducer;

/**
 * Reads many partitions of one topic in batches. Reads wait for each other; everything else waits for nobody.
 */
typedef struct IggyReader IggyReader;

/**
 * What a call brought.
 */
typedef struct IggyReply IggyReply;

/**
 * Bytes.
 */
typedef struct {
    /**
     * May be NULL when the length is 0.
     */
    const uint8_t *data;
    /**
     * How many.
     */
    size_t length;
} IggyBytes;

/**
 * How a call ends: with a failure or a reply, the other being NULL. The callback owns what it gets.
 */
typedef void (*IggyDone)(void *user, IggyFailure *failure, IggyReply *reply);

/**
 * UTF-8 without an end mark.
 */
typedef struct {
    /**
     * May be NULL when the length is 0.
     */
    const char *data;
    /**
     * In bytes.
     */
    size_t length;
} IggyText;

/**
 * Chooses the partition of every send. `choose` writes the partition and returns true, or writes why not into `reason`,
 * which has room for `IGGY_REASON_SIZE` bytes with an end mark, and returns false. It is called from several threads at
 * once. `drop` is called once, when nothing calls `choose` any more.
 */
typedef struct {
    bool (*choose)(void *user,
                   IggyText stream,
                   IggyText topic,
                   const IggyMessageList *messages,
                   uint32_t *partition_id,
                   char *reason);
    void (*drop)(void *user);
    void *user;
} IggyPartitioner;

/**
 * A stream, topic, group or user: a name when the name has data, else a number.
 */
typedef struct {
    /**
     * Of 1 to 255 bytes.
     */
    IggyText name;
    /**
     * Counts when there is no name.
     */
    uint32_t number;
} IggyId;

/**
 * Who reads.
 */
typedef struct {
    /**
     * `IGGY_CONSUMER_ALONE`, `IGGY_CONSUMER_GROUP` or `IGGY_CONSUMER_EXTERNAL`.
     */
    uint8_t kind;
    /**
     * Its name or number.
     */
    IggyId id;
} IggyConsumerId;

/**
 * Where a read starts.
 */
typedef struct {
    /**
     * `IGGY_START_FIRST` and so on.
     */
    uint8_t kind;
    /**
     * Whether it goes on where another read ended: the members after the value count then, and other histories of the
     * partition are refused.
     */
    bool is_continuation;
    /**
     * Whether the history is known.
     */
    bool has_history;
    /**
     * The partition it belongs to.
     */
    uint32_t partition_id;
    /**
     * Of the kind.
     */
    uint64_t value;
    /**
     * The history.
     */
    uint64_t incarnation;
    /**
     * The ownership within its group; 0 for none.
     */
    uint64_t owner_generation;
    /**
     * The metadata position a node must have applied; 0 for any.
     */
    uint64_t metadata_op;
} IggyStart;

/**
 * Hears of each background send that failed, and frees the failure. `drop` is called once, when nothing calls `hear`
 * any more.
 */
typedef struct {
    void (*hear)(void *user, IggyFailure *failure);
    void (*drop)(void *user);
    void *user;
} IggyErrorListener;

/**
 * A typed value. Kinds: 1 raw, 2 string, 3 bool, 4 int8, 5 int16, 6 int32, 7 int64, 8 int128, 9 uint8, 10 uint16,
 * 11 uint32, 12 uint64, 13 uint128, 14 float32, 15 float64; what a later version defines is passed on.
 */
typedef struct {
    uint8_t kind;
    /**
     * 1 to 255 bytes.
     */
    IggyBytes bytes;
} IggyTyped;

/**
 * A message to send.
 */
typedef struct {
    /**
     * 1 to 64000000 bytes; copied.
     */
    IggyBytes payload;
    /**
     * The lower half of its id; the client makes an id when both halves are 0.
     */
    uint64_t id_low;
    /**
     * The upper half of its id.
     */
    uint64_t id_high;
    /**
     * When it was made, in microseconds since the Unix epoch; 0 for now.
     */
    uint64_t origin_timestamp;
    /**
     * Its headers, copied; NULL for none.
     */
    const IggyHeaders *headers;
    /**
     * The headers of a message that was read, as they came, instead.
     */
    IggyBytes headers_block;
} IggyNewMessage;

/**
 * A message as it is. What it points to lives as long as what it was asked of.
 */
typedef struct {
    /**
     * The payload.
     */
    IggyBytes payload;
    /**
     * Its headers, to be decoded; empty for none.
     */
    IggyBytes headers_block;
    /**
     * The lower half of its id.
     */
    uint64_t id_low;
    /**
     * The upper half of its id.
     */
    uint64_t id_high;
    /**
     * Its place in its partition; 0 before it was sent, as the members that follow.
     */
    uint64_t offset;
    /**
     * When the server took it: microseconds since the Unix epoch.
     */
    uint64_t timestamp;
    /**
     * When the sender made it: microseconds since the Unix epoch.
     */
    uint64_t origin_timestamp;
    /**
     * Of the frame.
     */
    uint64_t checksum;
} IggyMessageView;

/**
 * What a position says.
 */
typedef struct {
    uint32_t partition_id;
    /**
     * Of the last processed message.
     */
    uint64_t offset;
    /**
     * The history it belongs to: a partition that was deleted and made again has another.
     */
    uint64_t incarnation;
    /**
     * The ownership within its group; 0 for none.
     */
    uint64_t owner_generation;
} IggyCheckpointView;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Gives a call up. Its callback is called soon, and once; a write may have been applied.
 */
void iggy_call_cancel(const IggyCall *call);

/**
 * Frees the handle of a call, which goes on.
 */
void iggy_call_free(IggyCall *call);

/**
 * Frees a reply. What was read and not accepted is read again.
 */
void iggy_reply_free(IggyReply *reply);

/**
 * Takes what was read; until then no other read of the same object begins. Does nothing for replies of other calls.
 */
void iggy_reply_accept(IggyReply *reply);

/**
 * The value of a reply, borrowed from it; NULL when it has none, as at the end of events.
 */
const IggyValue *iggy_reply_value(const IggyReply *reply);

/**
 * The bytes of a reply, borrowed from it.
 */
IggyBytes iggy_reply_bytes(const IggyReply *reply);

/**
 * The messages of a reply, to be freed; NULL when there are none, as once a consumer was shut down.
 */
IggyBatch *iggy_reply_take_batch(IggyReply *reply);

/**
 * The reader of a reply, to be freed.
 */
IggyReader *iggy_reply_take_reader(IggyReply *reply);

/**
 * Whether this thread is one of the client's, on which nothing may block.
 */
bool iggy_on_client_thread(void);

/**
 * Ends all calls of the process without waiting for them, their callbacks included: for programs that end while calls
 * are under way and free what callbacks use. A later call starts anew.
 */
void iggy_stop(void);

/**
 * A call that panics inside the core, for the test that it ends with a failure.
 */
IggyCall *iggy_panics(IggyDone done, void *user);

/**
 * A client from its settings as JSON; it connects with the operation `connect`. NULL, and why, when a setting is
 * unknown, malformed or contradicts another. The partitioner may be NULL; it is taken in any case.
 */
IggyClient *iggy_client_new(IggyText settings, const IggyPartitioner *choose, IggyFailure **failure);

/**
 * Frees a client. Calls under way go on; producers, consumers and readers keep what they need.
 */
void iggy_client_free(IggyClient *client);

/**
 * Runs an operation by its name. Its arguments and its result are JSON; the reply has a value.
 */
IggyCall *iggy_client_invoke(const IggyClient *client,
                             IggyText operation,
                             IggyText arguments,
                             IggyDone done,
                             void *user);

/**
 * Sends one batch, which is taken in any case; the partitioning is JSON: `"balanced"`, `{"partition":3}` or
 * `{"key":BASE64}`. The value of the reply lists where the messages are.
 */
IggyCall *iggy_client_send_messages(const IggyClient *client,
                                    IggyId stream,
                                    IggyId topic,
                                    IggyText partitioning,
                                    IggyMessages *messages,
                                    IggyDone done,
                                    void *user);

/**
 * Sends a batch of an idempotent producer, which is taken in any case: the partition writes it once, however often it
 * is sent.
 */
IggyCall *iggy_client_send_producer_messages(const IggyClient *client,
                                             IggyId stream,
                                             IggyId topic,
                                             uint32_t partition_id,
                                             uint64_t producer_id,
                                             uint16_t epoch,
                                             uint32_t base_sequence,
                                             IggyMessages *messages,
                                             IggyDone done,
                                             void *user);

/**
 * Reads messages of one partition; the options are JSON. The reply has a batch.
 */
IggyCall *iggy_client_poll_messages(const IggyClient *client,
                                    IggyId stream,
                                    IggyId topic,
                                    uint32_t partition_id,
                                    IggyConsumerId consumer,
                                    IggyStart start,
                                    IggyText options,
                                    IggyDone done,
                                    void *user);

/**
 * Stores the position of messages that were read. One of an older history is refused.
 */
IggyCall *iggy_client_store_consumer_position(const IggyClient *client,
                                              IggyConsumerId consumer,
                                              IggyId stream,
                                              IggyId topic,
                                              const IggyCheckpoint *checkpoint,
                                              IggyDone done,
                                              void *user);

/**
 * Forgets the stored offset of the partition and history of a position.
 */
IggyCall *iggy_client_delete_consumer_position(const IggyClient *client,
                                               IggyConsumerId consumer,
                                               IggyId stream,
                                               IggyId topic,
                                               const IggyCheckpoint *checkpoint,
                                               IggyDone done,
                                               void *user);

/**
 * A raw request: to whoever must answer it, or to one node when the replica is not -1; with a deadline in
 * microseconds, or the client's own when that is 0. The reply has bytes.
 */
IggyCall *iggy_client_send_binary_request(const IggyClient *client,
                                          uint32_t code,
                                          IggyBytes payload,
                                          int16_t replica_id,
                                          uint64_t deadline,
                                          IggyDone done,
                                          void *user);

/**
 * Subscribes to what happens to the client.
 */
IggyEvents *iggy_client_subscribe_events(const IggyClient *client, IggyFailure **failure);

/**
 * A producer of a topic from its settings as JSON; it starts with `iggy_producer_init`. The partitioner and the listener
 * may be NULL; they are taken in any case.
 */
IggyProducer *iggy_client_producer(const IggyClient *client,
                                   IggyId stream,
                                   IggyId topic,
                                   IggyText settings,
                                   const IggyPartitioner *choose,
                                   const IggyErrorListener *hear,
                                   IggyFailure **failure);

/**
 * A consumer of its own, or a member of a group, from its settings as JSON; it starts with `iggy_consumer_init`.
 */
IggyConsumer *iggy_client_consumer(const IggyClient *client,
                                   IggyId name,
                                   IggyId stream,
                                   IggyId topic,
                                   bool is_group,
                                   IggyText settings,
                                   IggyFailure **failure);

/**
 * A reader of many partitions from its settings as JSON. The reply has a reader.
 */
IggyCall *iggy_client_reader(const IggyClient *client,
                             IggyId stream,
                             IggyId topic,
                             IggyConsumerId consumer,
                             IggyText settings,
                             IggyDone done,
                             void *user);

/**
 * Joins the group, or looks the partitions up. Must succeed before anything else.
 */
IggyCall *iggy_consumer_init(const IggyConsumer *consumer, IggyDone done, void *user);

/**
 * The next message as a batch of one. The reply has a batch once it is accepted; none once the consumer was shut down, or
 * every named partition stopped. What was not accepted is read again.
 */
IggyCall *iggy_consumer_next(const IggyConsumer *consumer,
                             IggyDone done,
                             void *user);

/**
 * The next messages of one partition at once, as `iggy_consumer_next`.
 */
IggyCall *iggy_consumer_next_batch(const IggyConsumer *consumer, IggyDone done, void *user);

/**
 * Stores a position. One at or below the last stored, or of an earlier assignment, stores nothing.
 */
IggyCall *iggy_consumer_commit(const IggyConsumer *consumer,
                               const IggyCheckpoint *checkpoint,
                               IggyDone done,
                               void *user);

/**
 * Notes that the application is done up to a position, for automatic commits after marks.
 */
bool iggy_consumer_mark(const IggyConsumer *consumer, const IggyCheckpoint *checkpoint, IggyFailure **failure);

/**
 * Stores an offset, whatever was read.
 */
IggyCall *iggy_consumer_store_offset(const IggyConsumer *consumer,
                                     uint32_t partition_id,
                                     uint64_t offset,
                                     IggyDone done,
                                     void *user);

/**
 * Forgets the stored offset of a partition.
 */
IggyCall *iggy_consumer_delete_offset(const IggyConsumer *consumer, uint32_t partition_id, IggyDone done, void *user);

/**
 * Goes on somewhere else in a partition; what was read ahead is dropped. Wakes a stopped partition.
 */
bool iggy_consumer_seek(const IggyConsumer *consumer, uint32_t partition_id, IggyStart to, IggyFailure **failure);

/**
 * Whether a position belongs to the ordering in which its partition is handed out now: neither a seek nor a new
 * assignment came since.
 */
bool iggy_consumer_is_current(const IggyConsumer *consumer, const IggyCheckpoint *checkpoint);

/**
 * The partitions it reads now, ascending: writes as many as there is room for and returns how many there are.
 */
size_t iggy_consumer_partitions(const IggyConsumer *consumer, uint32_t *partitions, size_t room);

/**
 * The partitions that wait for a seek, ascending: as `iggy_consumer_partitions`.
 */
size_t iggy_consumer_stopped(const IggyConsumer *consumer, uint32_t *partitions, size_t room);

/**
 * The offset of the last message of a partition that was handed out; false when there is none.
 */
bool iggy_consumer_last_consumed_offset(const IggyConsumer *consumer, uint32_t partition_id, uint64_t *offset);

/**
 * The last offset of a partition that this consumer stored; false when there is none.
 */
bool iggy_consumer_last_stored_offset(const IggyConsumer *consumer, uint32_t partition_id, uint64_t *offset);

/**
 * The partition of the message handed out last; -1 when there is none.
 */
int64_t iggy_consumer_partition_id(const IggyConsumer *consumer);

/**
 * Subscribes to what happens from now on. Only after `iggy_consumer_init`.
 */
IggyEvents *iggy_consumer_subscribe_events(const IggyConsumer *consumer, IggyFailure **failure);

/**
 * Ends the reads, stores what automatic commits still owe, leaves the group. May be called again.
 */
IggyCall *iggy_consumer_shutdown(const IggyConsumer *consumer, IggyDone done, void *user);

/**
 * Frees a consumer. A member that was not shut down leaves its group when the server misses it.
 */
void iggy_consumer_free(IggyConsumer *consumer);

/**
 * The next event as a value; the reply has no value when nothing can happen any more, or the subscription was closed.
 * What was not accepted is read again.
 */
IggyCall *iggy_events_next(const IggyEvents *events, IggyDone done, void *user);

/**
 * Ends the wait for the next event, and all later ones.
 */
void iggy_events_close(const IggyEvents *events);

/**
 * Frees a subscription.
 */
void iggy_events_free(IggyEvents *events);

/**
 * Frees a failure.
 */
void iggy_failure_free(IggyFailure *failure);

/**
 * What a caller would do about it.
 */
IggyClass iggy_failure_class(const IggyFailure *failure);

/**
 * The name of a class, in `snake_case`; empty above the last one.
 */
IggyText iggy_class_name(uint32_t class_);

/**
 * The code on the wire; 0 for failures that have none.
 */
uint32_t iggy_failure_code(const IggyFailure *failure);

/**
 * The name of the code in `snake_case`, as `stream_name_not_found`; that of the class where there is no code.
 */
IggyText iggy_failure_name(const IggyFailure *failure);

/**
 * What was wrong and what is allowed, for people.
 */
IggyText iggy_failure_message(const IggyFailure *failure);

/**
 * Whether the same call may succeed later.
 */
bool iggy_failure_retryable(const IggyFailure *failure);

/**
 * Whether a write took effect: 0 applied, 1 not applied, 2 unknown.
 */
uint8_t iggy_failure_outcome(const IggyFailure *failure);

/**
 * The operation to resolve or abandon when the outcome is unknown; 0 when there is none.
 */
uint64_t iggy_failure_operation(const IggyFailure *failure);

/**
 * The partition it concerns, when it is about reading one; -1 otherwise.
 */
int64_t iggy_failure_partition_id(const IggyFailure *failure);

/**
 * No headers.
 */
IggyHeaders *iggy_headers_new(void);

/**
 * Frees headers.
 */
void iggy_headers_free(IggyHeaders *headers);

/**
 * Sets a header, in place of one with the same key. Returns false, and why, when a kind and its bytes do not fit.
 */
bool iggy_headers_set(IggyHeaders *headers, IggyTyped key, IggyTyped value, IggyFailure **failure);

/**
 * Sets a header whose key is text, in place of one with the same key.
 */
bool iggy_headers_set_text(IggyHeaders *headers, IggyText key, IggyTyped value, IggyFailure **failure);

/**
 * The headers in the block of a message that was read. NULL, and why, when it is malformed.
 */
IggyHeaders *iggy_headers_decode(IggyBytes block, IggyFailure **failure);

/**
 * How many headers there are.
 */
size_t iggy_headers_count(const IggyHeaders *headers);

/**
 * A header by its place, in the order of keys; false beyond the end.
 */
bool iggy_headers_at(const IggyHeaders *headers, size_t index, IggyTyped *key, IggyTyped *value);

/**
 * No messages, and room for so many.
 */
IggyMessages *iggy_messages_new(size_t capacity);

/**
 * Frees messages that were not sent.
 */
void iggy_messages_free(IggyMessages *messages);

/**
 * Adds a message at the end. Returns false, and why, when it breaks a limit.
 */
bool iggy_messages_add(IggyMessages *messages, const IggyNewMessage *message, IggyFailure **failure);

/**
 * How many messages there are.
 */
size_t iggy_messages_count(const IggyMessages *messages);

/**
 * How many messages there are.
 */
size_t iggy_message_list_count(const IggyMessageList *list);

/**
 * A message by its place; false beyond the end.
 */
bool iggy_message_list_view(const IggyMessageList *list, size_t index, IggyMessageView *place);

/**
 * Frees messages that were read, and what their views point to.
 */
void iggy_batch_free(IggyBatch *batch);

/**
 * How many messages there are.
 */
size_t iggy_batch_count(const IggyBatch *batch);

/**
 * A message by its place; false beyond the end.
 */
bool iggy_batch_view(const IggyBatch *batch, size_t index, IggyMessageView *place);

/**
 * The partition.
 */
uint32_t iggy_batch_partition_id(const IggyBatch *batch);

/**
 * The newest offset of the partition.
 */
uint64_t iggy_batch_current_offset(const IggyBatch *batch);

/**
 * The position after the message of this place, to be freed; NULL beyond the end.
 */
IggyCheckpoint *iggy_batch_checkpoint(const IggyBatch *batch, size_t index);

/**
 * Where the next read of the partition starts; false for NULL.
 */
bool iggy_batch_continuation(const IggyBatch *batch, IggyStart *start);

/**
 * A position from its parts, as an application kept them.
 */
IggyCheckpoint *iggy_checkpoint_new(uint32_t partition_id,
                                    uint64_t offset,
                                    uint64_t incarnation,
                                    uint64_t owner_generation);

/**
 * The same position at another message of the same read; with the same offset a copy. NULL for NULL.
 */
IggyCheckpoint *iggy_checkpoint_at(const IggyCheckpoint *checkpoint, uint64_t offset);

/**
 * Frees a position.
 */
void iggy_checkpoint_free(IggyCheckpoint *checkpoint);

/**
 * What a position says; false for NULL.
 */
bool iggy_checkpoint_view(const IggyCheckpoint *checkpoint, IggyCheckpointView *view);

/**
 * Where a read goes on after a position; false for NULL.
 */
bool iggy_checkpoint_continuation(const IggyCheckpoint *checkpoint, IggyStart *start);

/**
 * Creates what is missing, unless told otherwise. Must succeed before the first send.
 */
IggyCall *iggy_producer_init(const IggyProducer *producer, IggyDone done, void *user);

/**
 * Sends messages, which are taken in any case, in order per partition. The partitioning is the producer's own when it is
 * empty. The value of the reply lists where the messages are; nothing when sent in the background.
 */
IggyCall *iggy_producer_send(const IggyProducer *producer,
                             IggyMessages *messages,
                             IggyText partitioning,
                             IggyDone done,
                             void *user);

/**
 * As `iggy_producer_send`, to another topic.
 */
IggyCall *iggy_producer_send_to(const IggyProducer *producer,
                                IggyId stream,
                                IggyId topic,
                                IggyMessages *messages,
                                IggyText partitioning,
                                IggyDone done,
                                void *user);

/**
 * Sends what is buffered and waits for it, within a deadline. May be called again.
 */
IggyCall *iggy_producer_shutdown(const IggyProducer *producer, IggyDone done, void *user);

/**
 * Frees a producer. What a background producer still buffers may not be sent: shut it down first.
 */
void iggy_producer_free(IggyProducer *producer);

/**
 * The next batch, all of one partition. The reply has a batch once it is accepted; what was not is read again. A failure
 * that names a partition concerns that partition alone: read on.
 */
IggyCall *iggy_reader_next(const IggyReader *reader,
                           IggyDone done,
                           void *user);

/**
 * Stores a position. One at or below the last stored, or of an older history, stores nothing.
 */
IggyCall *iggy_reader_commit(const IggyReader *reader, const IggyCheckpoint *checkpoint, IggyDone done, void *user);

/**
 * Notes that the application is done up to a position, for automatic commits after marks.
 */
bool iggy_reader_mark(const IggyReader *reader, const IggyCheckpoint *checkpoint, IggyFailure **failure);

/**
 * Goes on somewhere else in a partition; what was read ahead is dropped. Wakes a stopped partition.
 */
bool iggy_reader_seek(const IggyReader *reader, uint32_t partition_id, IggyStart to, IggyFailure **failure);

/**
 * Whether a position belongs to the ordering in which its partition is handed out now: no seek came since.
 */
bool iggy_reader_is_current(const IggyReader *reader, const IggyCheckpoint *checkpoint);

/**
 * The partitions it reads, ascending: writes as many as there is room for and returns how many there are.
 */
size_t iggy_reader_partitions(const IggyReader *reader, uint32_t *partitions, size_t room);

/**
 * The partitions that wait for a seek, ascending: as `iggy_reader_partitions`.
 */
size_t iggy_reader_stopped(const IggyReader *reader, uint32_t *partitions, size_t room);

/**
 * Subscribes to what happens from now on.
 */
IggyEvents *iggy_reader_subscribe_events(const IggyReader *reader, IggyFailure **failure);

/**
 * Ends the reads and stores what automatic commits still owe, within a deadline. May be called again.
 */
IggyCall *iggy_reader_close(const IggyReader *reader, IggyDone done, void *user);

/**
 * Frees a reader.
 */
void iggy_reader_free(IggyReader *reader);

/**
 * The name of an operation of the client by its place; empty beyond the end.
 */
IggyText iggy_operation_name(size_t index);

/**
 * The object and the name of a method by its place among those of all objects; false beyond the end.
 */
bool iggy_method_name(size_t index, IggyText *object, IggyText *method);

/**
 * What a value is.
 */
IggyValueKind iggy_value_kind(const IggyValue *value);

/**
 * A truth value; false for everything else.
 */
bool iggy_value_bool(const IggyValue *value);

/**
 * A whole number of 0 or more; 0 for everything else.
 */
uint64_t iggy_value_unsigned(const IggyValue *value);

/**
 * A whole number; 0 for everything else.
 */
int64_t iggy_value_signed(const IggyValue *value);

/**
 * Any number; 0 for everything else.
 */
double iggy_value_float(const IggyValue *value);

/**
 * Text; empty for everything else.
 */
IggyText iggy_value_text(const IggyValue *value);

/**
 * How many values are in a list or an object; 0 for everything else.
 */
size_t iggy_value_length(const IggyValue *value);

/**
 * A value of a list or an object by its place; NULL beyond the end.
 */
const IggyValue *iggy_value_at(const IggyValue *value, size_t index);

/**
 * The name of a value of an object by its place; empty beyond the end.
 */
IggyText iggy_value_name_at(const IggyValue *value, size_t index);

/**
 * A value of an object by its name; NULL when there is none.
 */
const IggyValue *iggy_value_get(const IggyValue *value, IggyText name);

/**
 * A value as JSON with an end mark; free it with `iggy_json_free`. NULL when there is none.
 */
char *iggy_value_json(const IggyValue *value);

/**
 * Frees what `iggy_value_json` returned.
 *
 * # Safety
 * It was returned by that function and not freed since.
 */
void iggy_json_free(char *json);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* IGGY_H */

#ifndef __cplusplus
/** A text of C. */
static inline IggyText iggy_text(const char *text) {
    IggyText made = {text, 0};
    while (text && text[made.length]) made.length++;
    return made;
}
#endif
