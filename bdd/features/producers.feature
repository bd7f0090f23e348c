Feature: Producers
  A producer creates what it needs, batches what it is given and says what became of it.

  Background:
    Given a signed-in client

  Scenario: A producer creates its stream and its topic
    Given a producer for the stream "fresh" and the topic "new"
    When the producer sends 10 messages
    Then the stream "fresh" exists with 1 topics
    And partition 0 holds 10 messages

  Scenario: A producer that may not create says what is missing
    When a producer for the stream "fresh" and the topic "new" starts without creating them
    Then the request fails with "stream_name_not_found"

  Scenario: A long send is split into batches and stays in order
    Given the stream "orders" with the topic "created" of 1 partitions
    And a producer with batches of 100 messages
    When the producer sends 1050 messages
    And partition 0 is polled from the first message with a count of 2000
    Then the poll returns the messages 0 to 1049

  Scenario: A producer in the background sends everything before it is closed
    Given the stream "orders" with the topic "created" of 1 partitions
    And a producer in the background
    When the producer sends 500 messages one by one
    And the producer is closed
    And partition 0 is polled from the first message with a count of 1000
    Then the poll returns the messages 0 to 499

  Scenario: An idempotent producer writes everything once
    Given the stream "orders" with the topic "created" of 2 partitions
    And an idempotent producer
    When the producer sends 200 messages
    Then the partitions hold 200 messages in all

  Scenario: A closed producer refuses to send
    Given the stream "orders" with the topic "created" of 1 partitions
    And a producer in the background
    When the producer is closed
    And the producer sends 1 messages
    Then the request fails with "producer_closed"

  Scenario Outline: Only who has the key reads what was encrypted
    Given the stream "orders" with the topic "created" of 1 partitions
    And a client that encrypts with <cipher> and the key "a key of 32 bytes, never shown!!"
    When the encrypting client sends 3 messages to partition 0
    And the encrypting client polls partition 0
    Then the poll returns the messages 0 to 2
    And every message has the payload, the id and the headers it was sent with
    When partition 0 is polled from the first message
    Then no payload is readable

    Examples:
      | cipher          |
      | AES-256-GCM     |
      | AES-256-GCM-SIV |
