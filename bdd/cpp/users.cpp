// Users, permissions, signing in, tokens.

#include "world.hpp"

namespace bdd {
namespace {

iggy::Permissions permissions(World& world, const Json& said) {
    iggy::Permissions out{.global = said.at("global").get<std::vector<std::string>>()};
    for (const auto& stream : said.at("streams")) {
        const Json& which = stream.at("stream");
        std::uint32_t number = 0;
        if (which.is_number()) {
            number = which;
        } else {
            number = world.client().get_stream(which.get<std::string>()).get(deadline).value().id;
        }
        out.streams[number] = {.granted = stream.at("granted").get<std::vector<std::string>>()};
    }
    return out;
}

void sign_in(const World& world, const std::string& credentials) {
    const auto client = world.connect(credentials);
    static_cast<void>(client->get_me().get(deadline));
    client->shutdown().get(deadline);
}

/// Signs in with a token that is held apart from the address.
void sign_in_with_token(const World& world, const std::string& token) {
    const iggy::Client client(iggy::ClientOptions{.server_address = world.address()});
    client.login_with_personal_access_token(token).get(deadline);
    static_cast<void>(client.get_me().get(deadline));
    client.shutdown().get(deadline);
}

template <typename F>
void check_fails(F&& request, const std::string& name) {
    try {
        request();
    } catch (const iggy::Error& error) {
        check_equal(error.name(), name);
        return;
    }
    check(false, "it did not fail");
}

void sign_in_steps(Steps& steps) {
    steps["sign_in"] = [](World& world, const Json&) { world.sign_in(); };
    steps["sign_in_succeeds"] = [](World& world, const Json& given) {
        sign_in(world, given.at("user").get<std::string>() + ":" + given.at("password").get<std::string>());
    };
    steps["sign_in_fails"] = [](World& world, const Json& given) {
        world.expect_no_error();
        const auto credentials = given.at("user").get<std::string>() + ":" + given.at("password").get<std::string>();
        check_fails([&] { sign_in(world, credentials); }, given.at("error"));
    };
    steps["create_token"] = [](World& world, const Json& given) {
        const std::string name = given.at("token");
        auto made = world.attempt([&] { return world.client().create_personal_access_token(name).get(deadline); });
        if (made) world.tokens[name] = std::move(*made);
    };
    steps["delete_token"] = [](World& world, const Json& given) {
        const std::string name = given.at("token");
        world.did([&] { world.client().delete_personal_access_token(name).get(deadline); });
    };
    steps["tokens_are"] = [](World& world, const Json& given) {
        std::vector<std::string> found;
        for (const auto& token : world.client().get_personal_access_tokens().get(deadline)) found.push_back(token.name);
        check_equal(found, given.at("names"));
    };
    steps["token_signs_in"] = [](World& world, const Json& given) {
        sign_in_with_token(world, world.tokens.at(given.at("token")));
    };
    steps["token_is_refused"] = [](World& world, const Json& given) {
        world.expect_no_error();
        check_fails([&] { sign_in_with_token(world, world.tokens.at(given.at("token"))); }, given.at("error"));
    };
    steps["token_text_is_refused"] = [](World& world, const Json& given) {
        check_fails([&] { sign_in_with_token(world, given.at("text")); }, given.at("error"));
    };
    steps["connection_string_signs_in"] = [](World& world, const Json& given) {
        sign_in(world, world.tokens.at(given.at("token")));
    };
}

void acting_steps(Steps& steps) {
    steps["sign_user_in"] = [](World& world, const Json& given) { world.client_of(given.at("user")); };
    steps["user_polls"] = [](World& world, const Json& given) {
        const auto& client = world.client_of(given.at("user"));
        const std::uint32_t partition = given.at("partition");
        auto found = world.attempt([&] {
            return client
                .poll_messages(world.stream, world.topic, partition, "reader", iggy::PollingStrategy::first(), plenty())
                .get(deadline);
        });
        if (found) world.last_poll = std::move(*found);
        world.polled_partition = partition;
    };
    steps["user_sends"] = [](World& world, const Json& given) {
        const auto& client = world.client_of(given.at("user"));
        const std::uint32_t partition = given.at("partition");
        world.did([&] { world.send_by(client, partition, world.next_messages(partition, given.at("count"))); });
    };
    steps["user_creates_stream"] = [](World& world, const Json& given) {
        const auto& client = world.client_of(given.at("user"));
        const std::string stream = given.at("stream");
        world.did([&] { client.create_stream(stream).get(deadline); });
    };
    steps["user_lists_users"] = [](World& world, const Json& given) {
        const auto& client = world.client_of(given.at("user"));
        world.did([&] { client.get_users().get(deadline); });
    };
}

}  // namespace

void user_steps(Steps& steps) {
    sign_in_steps(steps);
    acting_steps(steps);
    steps["create_user"] = [](World& world, const Json& given) {
        const std::string name = given.at("user");
        iggy::UserCreateOptions options;
        if (given.contains("permissions")) options.permissions = permissions(world, given.at("permissions"));
        const std::string secret = given.value("password", password);
        world.did([&] { world.client().create_user(name, secret, options).get(deadline); });
    };
    steps["user_is_active"] = [](World& world, const Json& given) {
        world.expect_no_error();
        const std::string name = given.at("user");
        const auto found = world.client().get_user(name).get(deadline);
        check(found.has_value());
        check_equal(found->username, name);
        check(found->status == iggy::UserStatus::active);
    };
    steps["deactivate_user"] = [](World& world, const Json& given) {
        const std::string name = given.at("user");
        world.did([&] { world.client().update_user(name, {.status = iggy::UserStatus::inactive}).get(deadline); });
    };
    steps["delete_user"] = [](World& world, const Json& given) {
        const std::string name = given.at("user");
        world.did([&] { world.client().delete_user(name).get(deadline); });
    };
    steps["user_is_missing"] = [](World& world, const Json& given) {
        world.expect_no_error();
        check(!world.client().get_user(given.at("user").get<std::string>()).get(deadline));
    };
    steps["set_permissions"] = [](World& world, const Json& given) {
        const std::string name = given.at("user");
        const auto granted = permissions(world, given.at("permissions"));
        world.did([&] { world.client().update_permissions(name, granted).get(deadline); });
    };
    steps["change_password"] = [](World& world, const Json& given) {
        const std::string name = given.at("user");
        const std::string changed = given.at("password");
        world.did([&] { world.client().change_password(name, password, changed).get(deadline); });
    };
}

}  // namespace bdd
