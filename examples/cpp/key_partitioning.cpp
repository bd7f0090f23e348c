// Messages with the same key go to the same partition, in order.

#include <iggy/iggy.hpp>
#include <iostream>

int main(int count, char** arguments) {
    const iggy::Client client(count > 1 ? arguments[1] : "iggy://iggy:iggy@127.0.0.1:8090");
    client.connect().get();
    client.create_stream("keys").get();
    client.create_topic("keys", "orders", {.partitions_count = 10}).get();
    for (const char* customer : {"alice", "bob", "alice", "alice"}) {
        const iggy::Message message(std::string("order of ") + customer);
        const auto found =
            client.send_messages("keys", "orders", iggy::Partitioning::key(customer), std::span(&message, 1)).get();
        std::cout << customer << " is in partition " << found.at(0).partition_id << '\n';
    }

    // Or the application decides.
    const auto producer = client.producer(
        "keys", "orders",
        {.partitioner = [](std::string_view, std::string_view, const iggy::MessageList&) { return 7U; }});
    producer.init().get();
    const auto found = producer.send({"to the seventh"}).get();
    client.shutdown().get();
    return found.at(0).partition_id == 7 ? 0 : 1;
}
