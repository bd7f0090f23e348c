/* Creates a stream and a topic, sends messages and reads them back, in C. */

#include <iggy/iggy.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* A call that somebody waits for. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int done;
    IggyFailure *failure;
    IggyReply *reply;
} Waiting;

/* Called once, on a thread of the client. */
static void ended(void *user, IggyFailure *failure, IggyReply *reply) {
    Waiting *waiting = user;
    pthread_mutex_lock(&waiting->lock);
    waiting->failure = failure;
    waiting->reply = reply;
    waiting->done = 1;
    pthread_cond_signal(&waiting->ended);
    pthread_mutex_unlock(&waiting->lock);
}

static void fail(const IggyFailure *failure) {
    IggyText message = iggy_failure_message(failure);
    fprintf(stderr, "%.*s\n", (int)message.length, message.data);
    exit(1);
}

static Waiting begin(void) {
    Waiting waiting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, NULL, NULL};
    return waiting;
}

/* Waits for the end; the reply is to be freed. */
static IggyReply *finish(Waiting *waiting, IggyCall *call) {
    pthread_mutex_lock(&waiting->lock);
    while (!waiting->done) pthread_cond_wait(&waiting->ended, &waiting->lock);
    pthread_mutex_unlock(&waiting->lock);
    iggy_call_free(call);
    if (waiting->failure) fail(waiting->failure);
    return waiting->reply;
}

/* An operation whose result does not matter. */
static void invoke(const IggyClient *client, const char *operation, const char *arguments) {
    Waiting waiting = begin();
    IggyCall *call = iggy_client_invoke(client, iggy_text(operation), iggy_text(arguments), ended, &waiting);
    iggy_reply_free(finish(&waiting, call));
}

int main(int count, char **arguments) {
    char settings[512];
    snprintf(settings, sizeof settings, "{\"connection_string\":\"%s\"}",
             count > 1 ? arguments[1] : "iggy://iggy:iggy@127.0.0.1:8090");
    IggyFailure *failure = NULL;
    IggyClient *client = iggy_client_new(iggy_text(settings), NULL, &failure);
    if (failure) fail(failure);
    invoke(client, "connect", "{}");
    invoke(client, "create_stream", "{\"name\":\"from-c\"}");
    invoke(client, "create_topic", "{\"stream\":\"from-c\",\"name\":\"greetings\",\"partitions_count\":1}");

    const IggyId stream = {iggy_text("from-c"), 0};
    const IggyId topic = {iggy_text("greetings"), 0};
    IggyMessages *messages = iggy_messages_new(3);
    for (int number = 0; number < 3; number++) {
        char text[32];
        const int length = snprintf(text, sizeof text, "hello %d", number);
        IggyNewMessage message = {0};
        message.payload.data = (const uint8_t *)text;
        message.payload.length = (size_t)length;
        if (!iggy_messages_add(messages, &message, &failure)) fail(failure);
    }
    Waiting sending = begin();
    IggyCall *send = iggy_client_send_messages(client, stream, topic, iggy_text("{\"partition\":0}"), messages, ended,
                                               &sending);
    iggy_reply_free(finish(&sending, send));

    const IggyConsumerId reader = {IGGY_CONSUMER_ALONE, {iggy_text("reader"), 0}};
    IggyStart first = {0};
    first.kind = IGGY_START_FIRST;
    Waiting polling = begin();
    IggyCall *poll = iggy_client_poll_messages(client, stream, topic, 0, reader, first, iggy_text("{\"count\":10}"),
                                               ended, &polling);
    IggyReply *reply = finish(&polling, poll);
    IggyBatch *batch = iggy_reply_take_batch(reply);
    iggy_reply_free(reply);
    IggyMessageView view;
    size_t read = 0;
    for (; iggy_batch_view(batch, read, &view); read++) {
        printf("%llu %.*s\n", (unsigned long long)view.offset, (int)view.payload.length, (const char *)view.payload.data);
    }
    iggy_batch_free(batch);
    invoke(client, "shutdown", "{}");
    iggy_client_free(client);
    return read == 3 ? 0 : 1;
}
