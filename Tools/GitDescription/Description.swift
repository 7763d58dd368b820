/// Returns what git says of the commit that is built; the plugin writes `description`.
package func gitDescription() -> String { "\(description)" }
