Feature: Personal access tokens
  A program signs in with a token instead of a password, until the token expires or is deleted.

  Background:
    Given a signed-in client

  Scenario: A token signs in
    Given the token "build"
    Then signing in with the token "build" succeeds
    And a client whose connection string holds the token "build" can ask who it is

  Scenario: Tokens are listed by name and never shown again
    Given the token "build"
    And the token "deploy"
    Then the tokens are "build" and "deploy"

  Scenario: A deleted token no longer signs in
    Given the token "build"
    When the token "build" is deleted
    Then signing in with the token "build" fails with "invalid_personal_access_token"

  Scenario: A name is used once
    Given the token "build"
    When the token "build" is created
    Then the request fails with "personal_access_token_already_exists"

  Scenario: Signing in with what is no token fails
    Then signing in with the token text "nonsense" fails with "invalid_personal_access_token"

  Scenario: A wrong password is refused
    Then signing in as "iggy" with "wrong" fails with "invalid_credentials"
