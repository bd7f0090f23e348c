// What tests share: checks, and a node of their own.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <iggy/iggy.hpp>

namespace testing {

/// Against hanging only.
inline constexpr std::chrono::seconds deadline{60};

inline void check(bool holds, const std::string& what = "this does not hold",
                  std::source_location place = std::source_location::current()) {
    if (!holds) throw std::runtime_error(what + " (" + place.file_name() + ":" + std::to_string(place.line()) + ")");
}

template <typename E, typename F>
E check_throws(F&& call, std::source_location place = std::source_location::current()) {
    try {
        call();
    } catch (const E& error) {
        return error;
    } catch (const std::exception& error) {
        check(false, std::string("another error: ") + error.what(), place);
    }
    check(false, "nothing was thrown", place);
    std::abort();
}

/// How often something is repeated; more in the long run.
inline int times(const char* variable, int usually) {
    const char* told = std::getenv(variable);
    return told ? std::atoi(told) : usually;
}

/// A node; its address survives restarts.
class Node {
public:
    Node() {
        int in[2];
        int out[2];
        check(pipe(in) == 0 && pipe(out) == 0);
        const char* programs = std::getenv("IGGY_PROGRAMS");
        check(programs != nullptr, "IGGY_PROGRAMS names the folder of iggy-test-node");
        const std::string program = std::string(programs) + "/iggy-test-node";
        process_ = fork();
        check(process_ >= 0);
        if (process_ == 0) {
            dup2(in[0], STDIN_FILENO);
            dup2(out[1], STDOUT_FILENO);
            for (const int end : {in[0], in[1], out[0], out[1]}) close(end);
            execl(program.c_str(), program.c_str(), static_cast<char*>(nullptr));
            _exit(127);
        }
        close(in[0]);
        close(out[1]);
        words_ = fdopen(in[1], "w");
        answers_ = fdopen(out[0], "r");
        const std::string ready = tell("start");
        address = ready.substr(6, ready.find(' ', 6) - 6);
    }
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    ~Node() {
        std::fclose(words_);
        std::fclose(answers_);
        waitpid(process_, nullptr, 0);
    }

    /// Tells the node what to do and returns what it answers.
    std::string tell(const char* word) {
        std::fprintf(words_, "%s\n", word);
        std::fflush(words_);
        char answer[512] = {};
        check(std::fgets(answer, sizeof answer, answers_) != nullptr, "the node ended");
        check(std::strncmp(answer, "failed", 6) != 0, answer);
        return answer;
    }

    [[nodiscard]] std::string connection_string() const { return "iggy://iggy:iggy@" + address; }

    /// A client with an empty topic `t` of two partitions in the stream `s`.
    [[nodiscard]] iggy::Client client() const {
        iggy::Client made(connection_string());
        made.connect().get(deadline);
        if (made.get_stream("s").get(deadline)) made.delete_stream("s").get(deadline);
        made.create_stream("s").get(deadline);
        made.create_topic("s", "t", {.partitions_count = 2}).get(deadline);
        return made;
    }

    std::string address;

private:
    pid_t process_;
    std::FILE* words_;
    std::FILE* answers_;
};

using Test = std::pair<const char*, std::function<void()>>;

/// Runs every test, or those whose names contain the argument.
inline int run(const std::vector<Test>& tests, int count, char** arguments) {
    const std::string_view wanted = count > 1 ? arguments[1] : "";
    int failed = 0;
    int ran = 0;
    for (const auto& [name, test] : tests) {
        if (std::string_view(name).find(wanted) == std::string_view::npos) continue;
        ++ran;
        try {
            test();
            std::cout << "ok      " << name << std::endl;
        } catch (const std::exception& error) {
            ++failed;
            std::cout << "FAILED  " << name << ": " << error.what() << std::endl;
        }
    }
    std::cout << ran - failed << " passed, " << failed << " failed" << std::endl;
    return failed == 0 && ran > 0 ? 0 : 1;
}

}  // namespace testing
