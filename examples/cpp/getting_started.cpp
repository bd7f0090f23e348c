// Creates a stream and a topic, sends a few messages and reads them back.

#include <iggy/iggy.hpp>
#include <iostream>

int main(int count, char** arguments) {
    const iggy::Client client(count > 1 ? arguments[1] : "iggy://iggy:iggy@127.0.0.1:8090");
    client.connect().get();
    client.create_stream("getting-started").get();
    client.create_topic("getting-started", "greetings", {.partitions_count = 1}).get();

    std::vector<iggy::Message> messages;
    for (int number = 0; number < 3; ++number) messages.emplace_back("hello " + std::to_string(number));
    client.send_messages("getting-started", "greetings", iggy::Partitioning::partition(0), messages).get();

    const iggy::PollOptions options{.count = 10, .max_wait = std::chrono::seconds(1)};
    const auto polled =
        client.poll_messages("getting-started", "greetings", 0, "reader", iggy::PollingStrategy::first(), options).get();
    for (const auto message : polled) std::cout << message.offset() << ' ' << message.text() << '\n';
    client.shutdown().get();
    return polled.size() == 3 && polled[2].text() == "hello 2" ? 0 : 1;
}
