/// The version of the command line.
package enum ToolVersion {
    package static let number = "1.0.0"
}
