// Two members share the partitions of a topic and commit what they processed.

#include <atomic>
#include <iggy/iggy.hpp>
#include <iostream>
#include <mutex>
#include <thread>

int main(int count, char** arguments) {
    const std::string address = count > 1 ? arguments[1] : "iggy://iggy:iggy@127.0.0.1:8090";
    const iggy::Client client(address);
    client.connect().get();
    client.create_stream("groups").get();
    client.create_topic("groups", "invoices", {.partitions_count = 4}).get();
    for (int number = 0; number < 20; ++number) {
        const iggy::Message message("invoice " + std::to_string(number));
        client.send_messages("groups", "invoices", iggy::Partitioning::balanced(), std::span(&message, 1)).get();
    }

    std::mutex printing;
    std::atomic<int> processed = 0;
    std::stop_source stop;
    const auto member = [&](const char* name) {
        const iggy::Client own(address);
        own.connect().get();
        const auto consumer = own.consumer_group("billing", "groups", "invoices");
        consumer.init().get();
        const auto handle = [&](const iggy::ReceivedMessage& received) {
            consumer.commit(received.checkpoint()).get();
            const std::lock_guard lock(printing);
            std::cout << name << " processed " << received.message().text() << " of partition "
                      << received.partition_id() << '\n';
            if (++processed == 20) stop.request_stop();
        };
        consumer.consume_messages(handle, stop.get_token());
        // Shutting a member down makes it leave its group at once.
        consumer.shutdown().get();
        own.shutdown().get();
    };
    std::jthread first(member, "first");
    std::jthread second(member, "second");
    first.join();
    second.join();
    client.shutdown().get();
    return 0;
}
