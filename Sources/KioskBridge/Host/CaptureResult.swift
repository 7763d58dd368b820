public import Foundation

/// A picture of a document.
public struct DocumentCaptureResult: Hashable, Sendable {
    public var imageData: Data
    /// In pixels.
    public var width: Int
    public var height: Int
    /// `image/jpeg`.
    public var mimeType: String
    /// The quality of the picture in numbers from 0 to 1, by name; nil if nobody measured it.
    public var quality: [String: Double]?

    public init(
        imageData: Data, width: Int, height: Int, mimeType: String = "image/jpeg", quality: [String: Double]? = nil
    ) {
        (self.imageData, self.width, self.height) = (imageData, width, height)
        (self.mimeType, self.quality) = (mimeType, quality)
    }
}

/// A picture of a person, and what a capture component made of it.
public struct SelfieCaptureResult: Hashable, Sendable {
    public var previewImageData: Data
    /// In pixels.
    public var width: Int
    public var height: Int
    public var mimeType: String
    /// The evidence for the identity service, encrypted by the capture component; nil if it made none.
    public var encryptedBlob: Data?
    /// The same without encryption; nil if it made none.
    public var unencryptedBlob: Data?

    public init(
        previewImageData: Data, width: Int, height: Int, mimeType: String = "image/jpeg", encryptedBlob: Data? = nil,
        unencryptedBlob: Data? = nil
    ) {
        (self.previewImageData, self.width, self.height) = (previewImageData, width, height)
        (self.mimeType, self.encryptedBlob, self.unencryptedBlob) = (mimeType, encryptedBlob, unencryptedBlob)
    }
}

/// The result of a capture.
public enum CaptureResult: Hashable, Sendable {
    case document(DocumentCaptureResult)
    case selfie(SelfieCaptureResult)
    case cancelled(reason: String)
    case failure(BridgeErrorPayload)

    /// The response: pictures as Base64 (RFC 4648, section 4), which exist in memory only.
    var response: (status: BridgeResponseStatus, data: [String: JSONValue]?, error: BridgeErrorPayload?) {
        switch self {
        case .document(let result):
            var data: [String: JSONValue] = [
                "imageData": .string(result.imageData.base64EncodedString()), "width": JSONValue(Int64(result.width)),
                "height": JSONValue(Int64(result.height)), "mimeType": .string(result.mimeType),
            ]
            if let quality = result.quality { data["quality"] = .object(quality.mapValues { .number($0) }) }
            return (.success, data, nil)
        case .selfie(let result):
            var data: [String: JSONValue] = [
                "previewImageData": .string(result.previewImageData.base64EncodedString()),
                "width": JSONValue(Int64(result.width)), "height": JSONValue(Int64(result.height)),
                "mimeType": .string(result.mimeType),
            ]
            data["encryptedBlob"] = result.encryptedBlob.map { .string($0.base64EncodedString()) }
            data["unencryptedBlob"] = result.unencryptedBlob.map { .string($0.base64EncodedString()) }
            return (.success, data, nil)
        case .cancelled(let reason): return (.cancelled, nil, .init(.cancelled, reason))
        case .failure(let error): return (.error, nil, error)
        }
    }
}
