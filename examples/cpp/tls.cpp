// Talks TLS with a server whose certificate is signed by an authority of its own.
//
// Takes the address of the server and the file with the certificate to trust.

#include <iggy/iggy.hpp>
#include <iostream>

int main(int count, char** arguments) {
    if (count != 3) return 2;
    const iggy::Client client(iggy::ClientOptions{
        .server_address = arguments[1],
        .username = "iggy",
        .password = "iggy",
        .tls = iggy::Tls{.domain = "localhost", .ca_file = arguments[2]},
    });
    client.connect().get();
    const auto producer = client.producer("private", "letters");
    producer.init().get();
    producer.send({"over TLS"}).get();
    const auto polled = client.poll_messages("private", "letters", 0, "reader", iggy::PollingStrategy::first()).get();
    std::cout << polled[0].text() << '\n';
    client.shutdown().get();
    if (polled[0].text() != "over TLS") return 1;

    const iggy::Client stranger(
        iggy::ClientOptions{.server_address = arguments[1], .tls = iggy::Tls{.domain = "localhost"}});
    try {
        stranger.connect().get();
    } catch (const iggy::ConnectionFailedError& error) {
        std::cout << "without the authority: " << error.what() << '\n';
        return 0;
    }
    return 1;
}
