import GitDescription

/// The version of this package, as every tool prints it.
package enum PackageVersion {
    /// The number of the topmost section of CHANGELOG.md: the next version's until that is tagged.
    private static let number = "0.1.0"

    /// The number; in a build of a commit without its tag also that commit, from `git describe`: `0.2.0-dev+0.1.0-12-gb57c0de`.
    package static let current = {
        let commit = gitDescription()
        return commit.isEmpty || commit == number ? number : "\(number)-dev+\(commit)"
    }()
}
