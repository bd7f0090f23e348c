// Ends of processes with calls in flight and clients nobody closed.

#include "testing.hpp"

namespace {

using testing::check;

/// What the process does that is started anew: it leaves everything behind.
int leave(const std::string& how, const std::string& address) {
    static iggy::Client client(address);
    client.connect().get(testing::deadline);
    static std::vector<iggy::Op<void>> pings;
    static std::vector<iggy::Op<iggy::PolledMessages>> polls;
    static std::vector<std::future<void>> futures;
    const iggy::PollOptions waits{.max_wait = std::chrono::seconds(60)};
    for (int index = 0; index < 60; ++index) {
        polls.push_back(client.poll_messages("s", "t", 0, "c", iggy::PollingStrategy::offset(1'000'000), waits));
    }
    for (int index = 0; index < 900; ++index) pings.push_back(client.ping());
    for (int index = 0; index < 40; ++index) futures.push_back(client.ping().future());
    if (how == "stop") {
        iggy::stop();
        for (auto& poll : polls) {
            testing::check_throws<iggy::CancelledCallError>([&] { static_cast<void>(poll.get(testing::deadline)); });
        }
    }
    // At once: nothing is waited for, and what is static is destroyed with calls in flight.
    if (how == "exit") std::exit(0);
    return 0;
}

void end_by_themselves(const std::string& how, const std::string& program) {
    const testing::Node node;
    node.client().shutdown().get(testing::deadline);
    for (int run = 0; run < testing::times("IGGY_TEST_EXITS", 20); ++run) {
        int errors[2];
        check(pipe(errors) == 0);
        const pid_t child = fork();
        check(child >= 0);
        if (child == 0) {
            dup2(errors[1], STDERR_FILENO);
            close(errors[0]);
            const std::string address = node.connection_string();
            execl(program.c_str(), program.c_str(), "leave", how.c_str(), address.c_str(), static_cast<char*>(nullptr));
            _exit(127);
        }
        close(errors[1]);
        char said[256] = {};
        const auto length = ::read(errors[0], said, sizeof said - 1);
        close(errors[0]);
        int status = 0;
        waitpid(child, &status, 0);
        check(WIFEXITED(status) && WEXITSTATUS(status) == 0, how + " ended with " + std::to_string(status) + " " + said);
        check(length == 0, how + " said " + said);
    }
}

}  // namespace

// PyO3/pyo3-async-runtimes#40
int main(int count, char** arguments) {
    if (count == 4) return leave(arguments[2], arguments[3]);
    const std::string program = arguments[0];
    return testing::run(
        {
            {"given calls in flight when main returns should end", [&] { end_by_themselves("return", program); }},
            {"given calls in flight when exit is called should end", [&] { end_by_themselves("exit", program); }},
            {"given calls in flight when stopped should be told and end", [&] { end_by_themselves("stop", program); }},
        },
        count, arguments);
}
