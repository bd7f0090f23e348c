// Sends in batches, in the background, and exactly once.

#include <iggy/iggy.hpp>
#include <iostream>

int main(int count, char** arguments) {
    const iggy::Client client(count > 1 ? arguments[1] : "iggy://iggy:iggy@127.0.0.1:8090");
    client.connect().get();

    // A producer creates what is missing, and splits long sends into batches.
    const auto direct = client.producer("producing", "direct", {.direct = iggy::Direct{.batch_length = 100}});
    direct.init().get();
    std::vector<iggy::Message> messages;
    for (int number = 0; number < 250; ++number) messages.emplace_back(std::to_string(number));
    std::cout << "stored in " << direct.send(messages).get().size() << " batches\n";

    // In the background sends return at once; shutting down waits until everything is stored.
    const auto background = client.producer("producing", "background", {.background = iggy::Background{}});
    background.init().get();
    for (const auto& message : messages) background.send_one(message).get();
    background.shutdown().get();

    // The partition writes each batch once, even when a reply was lost and it is sent again.
    const auto idempotent = client.producer("producing", "idempotent", {.idempotent = true});
    idempotent.init().get();
    idempotent.send({"once"}).get();

    for (const auto& [topic, wanted] : {std::pair("direct", 250U), std::pair("background", 250U), std::pair("idempotent", 1U)}) {
        const auto found = client.get_topic("producing", topic).get();
        std::cout << topic << ' ' << found.value().messages_count << '\n';
        if (found->messages_count != wanted) return 1;
    }
    client.shutdown().get();
    return 0;
}
