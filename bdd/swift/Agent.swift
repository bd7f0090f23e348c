// The agent of Swift: reads steps as lines of JSON and says how each ended. See bdd/driver.

import Foundation
import Iggy

/// A step of a scenario found something else than it should.
struct StepFailed: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

func check(_ holds: Bool, _ what: String) throws {
    if !holds { throw StepFailed(what) }
}

func same<T: Equatable>(_ expected: T, _ found: T, _ what: String = "") throws {
    if expected != found { throw StepFailed("\(what) expected \(expected), found \(found)") }
}

/// What a step is told.
struct Arguments {
    let values: [String: Any]

    func has(_ name: String) -> Bool { values[name] != nil && !(values[name] is NSNull) }

    private func found<T>(_ name: String, as type: T.Type) throws -> T {
        guard let found = values[name] as? T else { throw StepFailed("there is no argument \(name) that is a \(T.self)") }
        return found
    }

    func text(_ name: String) throws -> String { try found(name, as: String.self) }
    func texts(_ name: String) throws -> [String] { try found(name, as: [String].self) }
    func int(_ name: String) throws -> Int { try found(name, as: NSNumber.self).intValue }
    func number(_ name: String) throws -> UInt32 { UInt32(try int(name)) }
    func wide(_ name: String) throws -> UInt64 { try found(name, as: NSNumber.self).uint64Value }
    func numbers(_ name: String) throws -> [UInt32] { try found(name, as: [NSNumber].self).map(\.uint32Value) }
    func truth(_ name: String) throws -> Bool { try found(name, as: NSNumber.self).boolValue }
    func object(_ name: String) throws -> Arguments { Arguments(values: try found(name, as: [String: Any].self)) }
    func objects(_ name: String) throws -> [Arguments] {
        try found(name, as: [[String: Any]].self).map(Arguments.init)
    }
    func ifPresent<T>(_ name: String, _ read: (String) throws -> T) rethrows -> T? {
        has(name) ? try read(name) : nil
    }
}

typealias Step = @MainActor (World, Arguments) async throws -> Void

@main @MainActor
struct Agent {
    private let steps = [resourceSteps, messageSteps, pollSteps, consumerSteps, readerSteps, userSteps, systemSteps]
        .reduce(into: [String: Step]()) { $0.merge($1) { _, later in later } }
    private var world: World?

    static func main() async {
        var agent = Agent()
        while let line = readLine() {
            let answer = await agent.answer(line)
            guard let text = try? JSONSerialization.data(withJSONObject: answer) else { exit(1) }
            FileHandle.standardOutput.write(text + Data("\n".utf8))
        }
    }

    private mutating func answer(_ line: String) async -> [String: String] {
        do {
            let told = Arguments(
                values: try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:])
            switch try told.text("op") {
            case "begin":
                let begun = World(address: try told.text("address"))
                world = begun
                try await begun.clean()
            case "end":
                try await world?.finish()
                world = nil
            default:
                guard let step = steps[try told.text("name")] else { return ["status": "undefined"] }
                guard let world else { throw StepFailed("no scenario began") }
                let arguments = try told.object("arguments")
                if try told.text("keyword") == "then" {
                    try await step(world, arguments)
                } else {
                    try await world.attempt { try await step(world, arguments) }
                }
            }
            return ["status": "passed"]
        } catch {
            return ["status": "failed", "message": "\(error)"]
        }
    }
}
