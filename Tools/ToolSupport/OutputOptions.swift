import ArgumentParser

/// The option `--json` of all commands that print results.
package struct JSONOption: ParsableArguments {
    @Flag(help: "Print one JSON object instead of text.")
    package var json = false

    package init() {}
}

/// The option `-o` of all commands that make a file; the default is standard output.
package struct OutputFile: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: .init("The file to write; - for standard output, which is the default.", valueName: "file"))
    package var output = "-"

    @Flag(help: "Replace the file if it is there.")
    package var force = false

    package init() {}
}
