Feature: User headers
  A message carries typed headers beside its payload, and they arrive with their kind and every bit of their value.

  Background:
    Given a signed-in client
    And the stream "orders" with the topic "created" of 1 partitions

  Scenario Outline: Every kind of header arrives as it was sent
    When a message with the header "key" of the kind "<kind>" and the value "<value>" is sent
    And partition 0 is polled from the first message
    Then the header "key" of message 0 has the kind "<kind>" and the value "<value>"

    Examples:
      | kind    | value                                    |
      | raw     | 00ff10                                   |
      | string  | zamówienie 注文                            |
      | bool    | true                                     |
      | bool    | false                                    |
      | int8    | -128                                     |
      | int16   | -32768                                   |
      | int32   | -2147483648                              |
      | int64   | -9223372036854775808                     |
      | int128  | -170141183460469231731687303715884105728 |
      | uint8   | 255                                      |
      | uint16  | 65535                                    |
      | uint32  | 4294967295                               |
      | uint64  | 18446744073709551615                     |
      | uint128 | 340282366920938463463374607431768211455  |
      | float32 | 1.5                                      |
      | float64 | -2.25                                    |

  Scenario: A message may have many headers
    When a message with 20 headers is sent
    And partition 0 is polled from the first message
    Then every message has the payload, the id and the headers it was sent with

  Scenario: A value of more than 255 bytes is no header
    When a message with the header "key" of 256 bytes is sent
    Then the request fails with "invalid_header_value"
