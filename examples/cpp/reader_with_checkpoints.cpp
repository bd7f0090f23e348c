// Reads many partitions in batches and goes on where it stopped, in a coroutine.

#include <iggy/iggy.hpp>
#include <iostream>

namespace {

iggy::Task<std::vector<std::string>> read(const iggy::Client& client, std::size_t count) {
    std::vector<std::string> texts;
    // Named, because GCC 12 does not take a list within braces as an argument of what is awaited.
    const iggy::ReaderOptions options{.partitions = {0, 1, 2}};
    const auto reader = co_await client.reader("reading", "events", "audit", options);
    while (texts.size() < count) {
        const auto batch = co_await reader.next();
        for (const auto message : batch) texts.emplace_back(message.text());
        if (const auto checkpoint = batch.checkpoint()) co_await reader.commit(*checkpoint);
    }
    co_await reader.close();
    co_return texts;
}

}  // namespace

int main(int count, char** arguments) {
    const iggy::Client client(count > 1 ? arguments[1] : "iggy://iggy:iggy@127.0.0.1:8090");
    client.connect().get();
    client.create_stream("reading").get();
    client.create_topic("reading", "events", {.partitions_count = 3}).get();
    for (int run = 0; run < 2; ++run) {
        for (std::uint32_t partition = 0; partition < 3; ++partition) {
            const iggy::Message message("run " + std::to_string(run) + ", partition " + std::to_string(partition));
            client.send_messages("reading", "events", iggy::Partitioning::partition(partition), std::span(&message, 1)).get();
        }
        // The second run starts after what the first one committed.
        const auto texts = read(client, 3).get();
        for (const auto& text : texts) {
            std::cout << text << '\n';
            if (!text.starts_with("run " + std::to_string(run))) return 1;
        }
    }
    client.shutdown().get();
    return 0;
}
