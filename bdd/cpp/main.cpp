// The agent of C++: does what the driver says, one line of JSON each way (see bdd/driver).

#include <iostream>
#include <memory>
#include <string>

#include "world.hpp"

namespace {

using bdd::Json;

Json run(const bdd::Steps& steps, std::unique_ptr<bdd::World>& world, const Json& said) {
    const std::string op = said.at("op");
    if (op == "begin") {
        world.reset();
        world = std::make_unique<bdd::World>(said.at("address").get<std::string>());
    } else if (op == "step") {
        const auto step = steps.find(said.at("name"));
        if (step == steps.end()) return {{"status", "undefined"}};
        step->second(*world, said.at("arguments"));
    } else {
        world->finish();
        world.reset();
    }
    return {{"status", "passed"}};
}

}  // namespace

int main() {
    bdd::Steps steps;
    for (const auto add : {bdd::resource_steps, bdd::message_steps, bdd::poll_steps, bdd::offset_steps,
                           bdd::producer_steps, bdd::consumer_steps, bdd::reader_steps, bdd::user_steps,
                           bdd::node_steps}) {
        add(steps);
    }
    std::unique_ptr<bdd::World> world;
    for (std::string line; std::getline(std::cin, line);) {
        Json answer;
        try {
            answer = run(steps, world, Json::parse(line));
        } catch (const std::exception& error) {
            answer = {{"status", "failed"}, {"message", error.what()}};
        }
        std::cout << answer.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
    }
    return 0;
}
