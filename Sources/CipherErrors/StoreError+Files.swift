extension StoreError {
    /// Creates the error for a path at which no file exists.
    package static func missingFile(_ path: String, _ detail: String = "there is no such file") -> StoreError {
        StoreError(.missingFile, path: path, detail, advice: "check the path")
    }

    /// Creates the error for a new file whose folder does not exist.
    package static func missingFolder(_ path: String) -> StoreError {
        StoreError(.missingFile, path: path, "the file's folder does not exist", advice: "create the folder first")
    }

    /// Creates the error for an existing file that occupies a required name.
    package static func inTheWay(_ path: String, _ detail: String, _ code: Code = .nameTaken) -> StoreError {
        StoreError(code, path: path, detail, advice: "move this file elsewhere", changed: .nothing)
    }
}
