// Payloads and headers are encrypted by the client; the server never sees them.

#include <array>
#include <iggy/iggy.hpp>
#include <iostream>
#include <random>

int main(int count, char** arguments) {
    const std::string address = count > 1 ? arguments[1] : "iggy://iggy:iggy@127.0.0.1:8090";
    std::array<std::byte, 32> key;
    std::random_device random;
    for (auto& byte : key) byte = static_cast<std::byte>(random());

    const iggy::Client client(address, {.encryption = iggy::Encryption::aes_256_gcm(key)});
    client.connect().get();
    const auto producer = client.producer("secrets", "letters");
    producer.init().get();
    producer.send({"for your eyes only"}).get();
    const auto first = iggy::PollingStrategy::first();
    const auto polled = client.poll_messages("secrets", "letters", 0, "reader", first).get();
    std::cout << "with the key: " << polled[0].text() << '\n';

    const iggy::Client stranger(address);
    stranger.connect().get();
    const auto unreadable = stranger.poll_messages("secrets", "letters", 0, "reader", first).get();
    std::cout << "without it: " << unreadable[0].payload().size() << " bytes\n";
    stranger.shutdown().get();
    client.shutdown().get();
    return unreadable[0].text().find("eyes") == std::string_view::npos ? 0 : 1;
}
