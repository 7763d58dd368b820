/// The version of this package, as every tool prints it.
///
/// It is that of the topmost section of CHANGELOG.md: the next version's until that is tagged.
package enum PackageVersion {
    package static let current = "0.1.0"
}
