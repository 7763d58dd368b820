/// An image that a camera took: a JPEG (ISO/IEC 10918-1), in memory only.
///
/// It is the customer's, and prints without its bytes.
public struct CameraImage: Hashable, Sendable {
    /// The media type of the bytes, `image/jpeg`.
    public let mimeType: String
    /// The width in pixels.
    public let width: Int
    /// The height in pixels.
    public let height: Int
    /// The whole image, without metadata of the camera.
    public let bytes: [UInt8]

    init(jpeg bytes: [UInt8], width: Int, height: Int) {
        (mimeType, self.width, self.height, self.bytes) = ("image/jpeg", width, height, bytes)
    }
}

extension CameraImage: CustomStringConvertible, CustomReflectable {
    public var description: String { "\(mimeType), \(width) × \(height) pixels, \(bytes.count) bytes" }
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
