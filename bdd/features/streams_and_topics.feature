Feature: Life of streams, topics, partitions and segments
  What is created can be found, changed and deleted, and what is missing or already there is said so.

  Background:
    Given a signed-in client

  Scenario: A stream from its creation to its deletion
    When the stream "orders" is created
    Then the stream "orders" exists with 0 topics
    And the streams are "orders"
    When the stream "orders" is renamed to "sales"
    Then the stream "orders" does not exist
    And the stream "sales" exists with 0 topics
    When the stream "sales" is deleted
    Then the stream "sales" does not exist

  Scenario: A topic from its creation to its deletion
    Given the stream "orders" with the topic "created" of 2 partitions
    When the topic "created" is renamed to "placed"
    Then the topic "created" does not exist
    And the topic "placed" exists with 2 partitions
    And the topics are "placed"
    When the topic "placed" is deleted
    Then the topic "placed" does not exist

  Scenario: A topic remembers its settings
    Given the stream "orders"
    When the topic "created" is created with
      | partitions        | 3         |
      | durability        | persisted |
      | offset_durability | persisted |
      | message_expiry    | 1h        |
      | max_topic_size    | 1GiB      |
      | segment_size      | 2MiB      |
    Then the topic "created" has the settings
      | partitions        | 3         |
      | durability        | persisted |
      | offset_durability | persisted |
      | message_expiry    | 1h        |
      | max_topic_size    | 1GiB      |
      | segment_size      | 2MiB      |

  Scenario: Settings of a topic change
    Given the stream "orders" with the topic "created" of 1 partitions
    When the message expiry of the topic "created" is set to "30m"
    Then the topic "created" has the settings
      | partitions     | 1   |
      | message_expiry | 30m |

  Scenario: Deleting a stream deletes its topics
    Given the stream "orders" with the topic "created" of 1 partitions
    When the stream "orders" is deleted
    And the stream "orders" is created
    Then the topic "created" does not exist

  Scenario: Partitions are added and taken away
    Given the stream "orders" with the topic "created" of 1 partitions
    When 2 partitions are added
    Then the topic "created" exists with 3 partitions
    When 1 partitions are removed
    Then the topic "created" exists with 2 partitions

  Scenario: Full segments are deleted, the one in use is not
    Given the stream "orders"
    And the topic "created" with segments of "1MiB"
    And 3000000 bytes of messages in partition 0
    When 100 segments of partition 0 are deleted
    And partition 0 is polled from the first message
    Then the poll returns messages from later than offset 0

  Scenario Outline: A name that is taken is refused
    Given the stream "orders" with the topic "created" of 1 partitions
    And the consumer group "billing"
    When <what>
    Then the request fails with "<error>"

    Examples:
      | what                                    | error                              |
      | the stream "orders" is created          | stream_name_already_exists         |
      | the topic "created" is created          | topic_name_already_exists          |
      | the consumer group "billing" is created | consumer_group_name_already_exists |

  Scenario Outline: What is missing is named
    Given the stream "orders"
    When <what>
    Then the request fails with "<error>"

    Examples:
      | what                                      | error                 |
      | the stream "nowhere" is deleted           | stream_name_not_found |
      | the stream "nowhere" is renamed to "else" | stream_name_not_found |
      | the topic "nothing" is deleted            | topic_name_not_found  |
      | the topic "nothing" is renamed to "else"  | topic_name_not_found  |

  Scenario: The options of each kind of resource are described
    Then the options of "stream" include "name"
    And the options of "topic" include "message_expiry"
    And the options of "user" include "username"
