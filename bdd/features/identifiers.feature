Feature: Identifiers
  Streams, topics and users are named by a number or by a name in any language, up to 255 bytes.

  Background:
    Given a signed-in client

  Scenario Outline: Names may be written in any script
    Given the stream "<name>" with the topic "<name>" of 1 partitions
    When 3 messages are sent to partition 0
    And partition 0 is polled from the first message
    Then the poll returns the messages 0 to 2
    And the stream "<name>" exists with 1 topics

    Examples:
      | name            |
      | orders          |
      | zamówienia      |
      | 注文             |
      | заказы 2026     |
      | طلبات           |
      | 🛒-orders-🚚     |
      | with space/dot. |

  Scenario: A number finds what a name finds
    Given the stream "orders" with the topic "created" of 1 partitions
    Then the number of the stream "orders" finds the same stream
    And the number of the topic "created" finds the same topic

  Scenario Outline: A name has 1 to 255 bytes
    When a stream with a name of <bytes> bytes is created
    Then <outcome>

    Examples:
      | bytes | outcome                                      |
      | 1     | the request succeeds                         |
      | 255   | the request succeeds                         |
      | 0     | the request fails with "invalid_stream_name" |
      | 256   | the request fails with "invalid_stream_name" |
