/// An image of a face, with what its record says about it.
public struct FaceImage: Hashable, Sendable {
    /// The gender, as a face record has it.
    public enum Gender: Hashable, Sendable {
        case unspecified, male, female
        /// ISO/IEC 39794-5 only.
        case other
        case unknown
    }

    public let image: EncodedImage
    /// The width in pixels, as the record has it; nil if it does not.
    public let width: Int?
    /// The height in pixels, as the record has it; nil if it does not.
    public let height: Int?
    /// The gender; nil if the record has none, or a number that means none.
    public let gender: Gender?
    /// The other elements of a record of ISO/IEC 19794-5; nil in one of ISO/IEC 39794-5.
    public let information: FaceInformation?
}

extension FaceImage: PersonalData {
    /// The format and the number of bytes.
    public var description: String { "face, \(image)" }
}

/// The elements of a face record that say how the face looks and how the image was made, as numbers of ISO/IEC
/// 19794-5:2005 (5.5 to 5.7).
public struct FaceInformation: Hashable, Sendable {
    /// The number of feature points between the blocks; their coordinates are skipped.
    public let featurePointCount: Int
    public let eyeColor: UInt8
    public let hairColor: UInt8
    /// 24 bits: glasses, moustache, beard and so on.
    public let propertyMask: UInt32
    public let expression: UInt16
    /// Yaw, pitch and roll.
    public let poseAngle: [UInt8]
    /// The uncertainty of yaw, pitch and roll.
    public let poseAngleUncertainty: [UInt8]
    /// 0 basic, 1 full frontal, 2 token frontal.
    public let faceImageType: UInt8
    /// 0 JPEG, 1 JPEG 2000.  ``EncodedImage/format`` is of the image itself.
    public let imageDataType: UInt8
    public let imageColorSpace: UInt8
    public let sourceType: UInt8
    public let deviceType: UInt16
    public let quality: UInt16
}

extension FaceInformation: PersonalData {
    public var description: String { "face information" }
}
