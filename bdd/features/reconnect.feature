Feature: Reconnecting
  A client lives through the restart of its server: it connects again, signs in again and goes on.

  Background:
    Given a signed-in client
    And the stream "orders" with the topic "created" of 2 partitions

  Scenario: Requests go on after a restart
    Given 5 messages in partition 0
    When the server is restarted
    And 5 messages are sent to partition 0
    And partition 0 is polled from the first message
    Then the poll returns the messages 0 to 9

  Scenario: Requests go on after a crash
    Given 5 messages in partition 0
    When the server is killed and started again
    And partition 0 is polled from the first message
    Then the poll returns the messages 0 to 4

  Scenario: A request that is made while the server is away waits for it
    When the server is stopped
    And 3 messages are being sent to partition 0
    And the server is started
    Then the messages being sent arrive once

  Scenario: A reader goes on after a restart
    Given a reader of the partitions 0 to 1
    And 2 messages in each partition
    And the reader has read 4 messages
    When the server is restarted
    And 2 messages are sent to each partition
    And the reader has read 4 more messages
    Then it read 4 messages of each partition in order

  Scenario: A member of a group goes on after a restart
    Given the member "a" of the group "billing"
    And 2 messages in each partition
    And "a" received 4 messages and committed them
    When the server is restarted
    And 2 messages are sent to each partition
    And "a" receives 4 messages
    Then every partition was read in order and nothing twice
