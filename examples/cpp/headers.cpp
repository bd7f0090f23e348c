// Messages carry typed headers beside their payload.

#include <iggy/iggy.hpp>
#include <iostream>

int main(int count, char** arguments) {
    const iggy::Client client(count > 1 ? arguments[1] : "iggy://iggy:iggy@127.0.0.1:8090");
    client.connect().get();
    const auto producer = client.producer("headers", "traced");
    producer.init().get();
    producer
        .send({iggy::Message("payload").headers({
            {"trace", iggy::HeaderValue::string("4bf92f3577b34da6")},
            {"attempt", iggy::HeaderValue::int64(3)},
            {"sampled", iggy::HeaderValue::boolean(true)},
            {"ratio", iggy::HeaderValue::float64(0.25)},
            {"flags", iggy::HeaderValue::uint8(255)},
        })})
        .get();

    const auto polled = client.poll_messages("headers", "traced", 0, "reader", iggy::PollingStrategy::first()).get();
    const auto headers = polled[0].headers();
    for (const auto& [key, value] : headers) {
        std::cout << key.as_string() << " is of kind " << static_cast<int>(value.kind()) << '\n';
    }
    client.shutdown().get();
    return headers.find("attempt")->as_int64() == 3 ? 0 : 1;
}
