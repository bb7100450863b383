extension StoreError {
    /// The path leads to nothing.
    package static func missingFile(_ path: String, _ detail: String = "there is no such file") -> StoreError {
        StoreError(.missingFile, path: path, detail, advice: "check the path")
    }

    /// The folder of a file that is to be made is not there.
    package static func missingFolder(_ path: String) -> StoreError {
        StoreError(.missingFile, path: path, "there is no such folder", advice: "create the folder first")
    }

    /// What is there keeps a name that is needed.
    package static func inTheWay(_ path: String, _ detail: String, _ code: Code = .nameTaken) -> StoreError {
        StoreError(code, path: path, detail, advice: "move it away", changed: .nothing)
    }
}
