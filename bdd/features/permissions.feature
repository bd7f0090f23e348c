Feature: Users and permissions
  A user may do what was granted and nothing else, and is told nothing about what it may not see.

  Background:
    Given a signed-in client
    And the stream "orders" with the topic "created" of 1 partitions
    And 3 messages in partition 0

  Scenario: A user from its creation to its deletion
    When the user "alice" with the password "secret123" is created
    Then the user "alice" exists and is active
    When the user "alice" is made inactive
    Then signing in as "alice" with "secret123" fails with "unauthenticated"
    When the user "alice" is deleted
    Then the user "alice" does not exist

  Scenario Outline: Whatever was not granted is refused
    Given the user "alice" who may <may>
    When "alice" <does>
    Then <outcome>

    Examples:
      | may                   | does                                | outcome                               |
      | do nothing            | sends 1 messages to partition 0     | the request fails with "unauthorized" |
      | do nothing            | polls partition 0                   | the request fails with "unauthorized" |
      | do nothing            | creates the stream "hers"           | the request fails with "unauthorized" |
      | do nothing            | lists the users                     | the request fails with "unauthorized" |
      | poll messages         | polls partition 0                   | the poll returns the messages 0 to 2  |
      | poll messages         | sends 1 messages to partition 0     | the request fails with "unauthorized" |
      | send messages         | sends 1 messages to partition 0     | the request succeeds                  |
      | send messages         | polls partition 0                   | the request fails with "unauthorized" |
      | manage streams        | creates the stream "hers"           | the request succeeds                  |
      | read users            | lists the users                     | the request succeeds                  |
      | poll messages of "orders" | polls partition 0               | the poll returns the messages 0 to 2  |
      | poll messages of another stream | polls partition 0         | the request fails with "unauthorized" |

  Scenario: Permissions change while a user is signed in
    Given the user "alice" who may do nothing
    And "alice" is signed in
    When the permissions of "alice" become poll messages
    And "alice" polls partition 0
    Then the poll returns the messages 0 to 2

  Scenario: A password is changed
    Given the user "alice" who may do nothing
    When the password of "alice" is changed to "another123"
    Then signing in as "alice" with "secret123" fails with "invalid_credentials"
    And signing in as "alice" with "another123" succeeds

  Scenario: The root user cannot be deleted
    When the user "iggy" is deleted
    Then the request fails with "cannot_delete_user"
