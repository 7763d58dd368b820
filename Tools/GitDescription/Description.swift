/// As CGitDescription declares it; the plugin writes `description`.
@_cdecl("gitDescription")
public func gitDescription() -> UnsafePointer<UInt8> { description.utf8Start }
