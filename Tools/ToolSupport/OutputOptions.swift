import ArgumentParser

/// `--json`, wherever something is shown.
package struct JSONOption: ParsableArguments {
    @Flag(help: "Print one JSON object instead of text.")
    package var json = false

    package init() {}
}

/// `-o`, wherever a file is made of what a subcommand is given; without it, standard output is.
package struct OutputFile: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: .init("The file to write; - for standard output, which is the default.", valueName: "file"))
    package var output = "-"

    @Flag(help: "Replace the file if it is there.")
    package var force = false

    package init() {}
}
