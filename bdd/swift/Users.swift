// Users, permissions, signing in and tokens.

import Iggy

extension World {
    fileprivate func permissions(_ told: Arguments) async throws -> Permissions {
        var granted = Permissions(global: Set(try told.texts("global").compactMap(GlobalPermission.init)))
        for of in try told.objects("streams") {
            let number: UInt32?
            if let name = try? of.text("stream") {
                number = try await client().getStream(streamID: .named(name))?.id
            } else {
                number = try of.number("stream")
            }
            guard let number else { throw StepFailed("there is no such stream") }
            let names = Set(try of.texts("granted").compactMap(StreamPermission.init))
            granted.streams[number] = StreamPermissions(granted: names)
        }
        return granted
    }

    fileprivate func trySignIn(_ credentials: String) async throws {
        let client = try await connect(credentials)
        _ = try await client.getMe()
        try await client.shutdown()
    }

    /// Signs in with a token that is held apart from the address.
    fileprivate func trySignIn(token: String) async throws {
        var configuration = ClientConfiguration()
        configuration.serverAddress = address
        let client = try IggyClient(configuration: configuration)
        do {
            try await client.loginWithPersonalAccessToken(token)
            _ = try await client.getMe()
        } catch {
            try await client.shutdown()
            throw error
        }
        try await client.shutdown()
    }

    fileprivate func token(_ name: String) throws -> String {
        guard let found = tokens[name] else { throw StepFailed("there is no token \(name)") }
        return found
    }
}

@MainActor
private func fails(_ name: String, _ call: @MainActor () async throws -> Void) async throws {
    do {
        try await call()
    } catch let error as IggyError {
        return try same(name, error.name)
    }
    throw StepFailed("it did not fail with \(name)")
}

@MainActor let userSteps: [String: Step] = [
    "sign_in": { world, _ in try await world.signIn() },
    "create_user": { world, told in
        var permissions: Permissions?
        if told.has("permissions") { permissions = try await world.permissions(told.object("permissions")) }
        _ = try await world.client().createUser(
            username: told.text("user"), password: told.ifPresent("password", told.text) ?? password,
            permissions: permissions)
    },
    "user_is_active": { world, told in
        try world.expectNoError()
        let found = try await world.client().getUser(userID: .named(told.text("user")))
        try same(told.text("user"), found?.username ?? "")
        try same(.active, found?.status)
    },
    "deactivate_user": { world, told in
        try await world.client().updateUser(userID: .named(told.text("user")), status: .inactive)
    },
    "delete_user": { try await $0.client().deleteUser(userID: .named($1.text("user"))) },
    "user_is_missing": { world, told in
        try world.expectNoError()
        try await same(nil, world.client().getUser(userID: .named(told.text("user"))))
    },
    "set_permissions": { world, told in
        let permissions = try await world.permissions(told.object("permissions"))
        try await world.client().updatePermissions(userID: .named(told.text("user")), permissions: permissions)
    },
    "change_password": { world, told in
        try await world.client().changePassword(
            userID: .named(told.text("user")), currentPassword: password, newPassword: told.text("password"))
    },
    "sign_in_succeeds": { try await $0.trySignIn("\($1.text("user")):\($1.text("password"))") },
    "sign_in_fails": { world, told in
        try world.expectNoError()
        try await fails(told.text("error")) {
            try await world.trySignIn("\(told.text("user")):\(told.text("password"))")
        }
    },
    "sign_user_in": { _ = try await $0.client(of: $1.text("user")) },
    "user_sends": { world, told in
        let partition = try told.number("partition")
        try await world.send(
            world.nextMessages(partition, told.int("count")), to: partition, by: world.client(of: told.text("user")))
    },
    "user_creates_stream": { world, told in
        _ = try await world.client(of: told.text("user")).createStream(name: told.text("stream"))
    },
    "user_lists_users": { _ = try await $0.client(of: $1.text("user")).getUsers() },
    "create_token": { world, told in
        let name = try told.text("token")
        world.tokens[name] = try await world.client().createPersonalAccessToken(name: name)
    },
    "delete_token": { try await $0.client().deletePersonalAccessToken(name: $1.text("token")) },
    "tokens_are": { world, told in
        try await same(told.texts("names"), world.client().getPersonalAccessTokens().map(\.name))
    },
    "token_signs_in": { try await $0.trySignIn(token: $0.token($1.text("token"))) },
    "token_is_refused": { world, told in
        try world.expectNoError()
        try await fails(told.text("error")) { try await world.trySignIn(token: world.token(told.text("token"))) }
    },
    "token_text_is_refused": { world, told in
        try await fails(told.text("error")) { try await world.trySignIn(token: told.text("text")) }
    },
    "connection_string_signs_in": { try await $0.trySignIn($0.token($1.text("token"))) },
]
