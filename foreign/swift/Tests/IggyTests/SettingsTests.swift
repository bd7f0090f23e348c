import Foundation
import Testing

@testable import Iggy

@Suite struct SettingsTests {
    @Test func given_text_with_every_kind_of_character_when_written_should_be_the_same_when_read() throws {
        let text = "a\"b\\c\n\u{1}\u{7f}é😀/"
        let read = try JSONDecoder().decode(String.self, from: Data(text.setting.utf8))
        #expect(read == text)
    }
}
