// Signing in, users, permissions, passwords and tokens.

extension IggyClient {
    // MARK: Signing in

    /// Signs in, connecting if need be. A client that is signed in logs out first.
    @discardableResult
    public func loginUser(username: String, password: String) async throws(IggyError) -> Identity {
        try await invoke("login_user", Settings().with("username", username).with("password", password))
    }

    /// Signs in with a personal access token, as ``loginUser(username:password:)``.
    @discardableResult
    public func loginWithPersonalAccessToken(_ token: String) async throws(IggyError) -> Identity {
        try await invoke("login_with_personal_access_token", Settings().with("token", token))
    }

    /// The session ends in the whole cluster, and its group memberships with it.
    public func logoutUser() async throws(IggyError) { try await perform("logout_user") }

    /// Who is signed in; nil when nobody is.
    public func userID() async throws(IggyError) -> UInt32? { try await invoke("user_id") }

    // MARK: Users

    /// All users.
    public func getUsers() async throws(IggyError) -> [User] { try await invoke("get_users") }

    /// A user and what it may do; nil when there is none.
    public func getUser(userID: Identifier) async throws(IggyError) -> UserDetails? {
        try await invoke("get_user", Settings().with("user", userID))
    }

    /// Creates a user, who may do nothing unless `permissions` says what.
    @discardableResult
    public func createUser(
        username: String, password: String, status: UserStatus = .active, permissions: Permissions? = nil,
        options: ResourceOptions = [:]
    ) async throws(IggyError) -> UserDetails {
        let arguments = Settings().with("username", username).with("password", password)
            .with("status", status.rawValue).with("permissions", permissions).with("options", options)
        return try await invoke("create_user", arguments)
    }

    /// Changes a user: its name, status, settings, and those that go back to their defaults.
    public func updateUser(
        userID: Identifier, username: String? = nil, status: UserStatus? = nil, options: ResourceOptions = [:],
        reset: [String] = []
    ) async throws(IggyError) {
        let arguments = Settings().with("user", userID).with("username", username).with("status", status?.rawValue)
            .with("options", options).with("reset", reset)
        try await perform("update_user", arguments)
    }

    /// What a user may do from now on; nil for nothing.
    public func updatePermissions(userID: Identifier, permissions: Permissions?) async throws(IggyError) {
        try await perform("update_permissions", Settings().with("user", userID).with("permissions", permissions))
    }

    /// Changes a password.
    public func changePassword(
        userID: Identifier, currentPassword: String, newPassword: String
    ) async throws(IggyError) {
        let arguments = Settings().with("user", userID).with("current", currentPassword).with("new", newPassword)
        try await perform("change_password", arguments)
    }

    /// Deletes a user; its sessions end.
    public func deleteUser(userID: Identifier) async throws(IggyError) {
        try await perform("delete_user", Settings().with("user", userID))
    }

    // MARK: Personal access tokens

    /// The tokens of the user who is signed in.
    public func getPersonalAccessTokens() async throws(IggyError) -> [PersonalAccessToken] {
        try await invoke("get_personal_access_tokens")
    }

    /// Creates a token and returns its text, which is shown this once. It never expires when `expiry` is nil.
    public func createPersonalAccessToken(
        name: String, expiry: Duration? = nil
    ) async throws(IggyError) -> String {
        try await invoke("create_personal_access_token", Settings().with("name", name).with("expiry", expiry))
    }

    /// Deletes a token.
    public func deletePersonalAccessToken(name: String) async throws(IggyError) {
        try await perform("delete_personal_access_token", Settings().with("name", name))
    }
}
