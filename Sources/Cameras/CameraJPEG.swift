import CTurboJPEG

/// JPEG of a camera's images, through libjpeg-turbo.  Only this file calls it.
enum CameraJPEG {
    /// An image that is none: what was wrong, without anything of the picture.
    struct Damage: Error, Hashable, Sendable {
        let reason: String
    }

    /// An instance of the library, of one of its kinds.
    private struct Instance: ~Copyable {
        let handle: tjhandle

        init(_ handle: tjhandle?) throws(Damage) {
            guard let handle else { throw Damage(reason: "no memory") }
            self.handle = handle
        }

        deinit { tjDestroy(handle) }

        var message: String { String(cString: tjGetErrorStr2(handle)) }

        /// Takes over what the library has allocated.
        static func take(_ bytes: UnsafeMutablePointer<UInt8>?, _ count: UInt) -> [UInt8] {
            defer { tjFree(bytes) }
            return Array(UnsafeBufferPointer(start: bytes, count: bytes == nil ? 0 : Int(count)))
        }
    }

    // MARK: From the camera

    /// Returns the image as a file that any program can read: Huffman tables, which Motion JPEG may leave out, are put in;
    /// what follows its end and what the camera says about itself are left out.  The picture is not compressed anew.
    ///
    /// The entropy-coded data are read to their end, so that a cut or damaged image is found.
    static func whole(_ bytes: [UInt8]) throws(Damage) -> CameraImage {
        // ISO/IEC 10918-1, B.2.1: SOI and EOI.
        guard bytes.starts(with: [0xFF, 0xD8]), contains(endOfImage: bytes) else { throw Damage(reason: "no end") }
        let instance = try Instance(tjInitTransform())
        let (width, height, units) = try size(bytes, instance)
        do throws(Damage) {
            return CameraImage(
                jpeg: try copy(bytes, instance, TJFLAG_STOPONWARNING), width: width, height: height)
        } catch {
            // Many cameras send spare bytes before a marker, to no harm
            // (https://github.com/libjpeg-turbo/libjpeg-turbo/issues/157).  The same is said where a part is missing.
            guard error.reason.contains(spareBytes), CameraRestarts.areComplete(bytes, units: units) else {
                throw error
            }
            return CameraImage(jpeg: try copy(bytes, instance, 0), width: width, height: height)
        }
    }

    private static let spareBytes = "extraneous bytes before marker"

    private static func contains(endOfImage bytes: [UInt8]) -> Bool {
        bytes.indices.dropFirst(3).reversed().contains { bytes[$0] == 0xD9 && bytes[$0 - 1] == 0xFF }
    }

    /// The size in pixels, and the number of minimum coded units (ISO/IEC 10918-1, A.2.3).
    private static func size(
        _ bytes: [UInt8], _ instance: borrowing Instance
    ) throws(Damage) -> (width: Int, height: Int, units: Int) {
        var (width, height, subsampling, space) = (Int32(0), Int32(0), Int32(0), Int32(0))
        guard
            tjDecompressHeader3(
                instance.handle, bytes, UInt(bytes.count), &width, &height, &subsampling, &space) == 0
        else { throw Damage(reason: instance.message) }
        let colors = TJCS(UInt32(bitPattern: space))
        guard colors != TJCS_CMYK, colors != TJCS_YCCK else { throw Damage(reason: "CMYK colors") }
        // Each side has 16 bits.
        guard width > 0, height > 0, Int(width) * Int(height) <= CameraLimits.pixels else {
            throw Damage(reason: "\(width) × \(height) pixels")
        }
        // From 8 to 32 pixels, as the library knows the subsamplings.
        let side = sides[UInt32(bitPattern: subsampling)] ?? (8, 8)
        let columns = (Int(width) + side.width - 1) / side.width
        let rows = (Int(height) + side.height - 1) / side.height
        return (Int(width), Int(height), columns * rows)
    }

    /// The sides of a minimum coded unit in pixels, by subsampling.
    private static let sides: [UInt32: (width: Int, height: Int)] = [
        TJSAMP_444.rawValue: (8, 8), TJSAMP_422.rawValue: (16, 8), TJSAMP_420.rawValue: (16, 16),
        TJSAMP_GRAY.rawValue: (8, 8), TJSAMP_440.rawValue: (8, 16), TJSAMP_411.rawValue: (32, 8),
    ]

    private static func copy(
        _ bytes: [UInt8], _ instance: borrowing Instance, _ flags: Int32
    ) throws(Damage) -> [UInt8] {
        var transform = tjtransform()
        (transform.op, transform.options) = (Int32(TJXOP_NONE.rawValue), TJXOPT_COPYNONE)
        var (result, count) = (UnsafeMutablePointer<UInt8>?.none, UInt(0))
        let status = tjTransform(
            instance.handle, bytes, UInt(bytes.count), 1, &result, &count, &transform, flags | TJFLAG_LIMITSCANS)
        let copy = Instance.take(result, count)
        guard status == 0 else {
            let reason = instance.message
            let isBearable =
                flags & TJFLAG_STOPONWARNING == 0 && tjGetErrorCode(instance.handle) == TJERR_WARNING.rawValue
                && reason.contains(spareBytes) && !copy.isEmpty
            guard isBearable else { throw Damage(reason: reason) }
            return copy
        }
        return copy
    }

    // MARK: From YUYV

    /// Compresses an image of YUYV: for each two pixels the bytes Y, Cb, Y, Cr (V4L2_PIX_FMT_YUYV).
    ///
    /// JFIF has the coefficients of ITU-R BT.601, as cameras have them; the range 16...235 becomes 0...255.
    static func compressed(_ yuyv: [UInt8], _ format: CameraNode.Format, quality: Int32) throws(Damage) -> CameraImage {
        let (width, height, stride) = (format.width, format.height, format.stride)
        guard stride >= 2 * width, yuyv.count >= stride * (height - 1) + 2 * width else {
            throw Damage(reason: "\(yuyv.count) bytes")
        }
        let planes = Planes(yuyv, format)
        let instance = try Instance(tjInitCompress())
        var (result, count) = (UnsafeMutablePointer<UInt8>?.none, UInt(0))
        let status = planes.luma.withUnsafeBufferPointer { luma in
            planes.blue.withUnsafeBufferPointer { blue in
                planes.red.withUnsafeBufferPointer { red in
                    var planes = [luma.baseAddress, blue.baseAddress, red.baseAddress]
                    return tjCompressFromYUVPlanes(
                        instance.handle, &planes, Int32(width), nil, Int32(height), Int32(TJSAMP_422.rawValue), &result,
                        &count, quality, 0)
                }
            }
        }
        let bytes = Instance.take(result, count)
        guard status == 0, !bytes.isEmpty else { throw Damage(reason: instance.message) }
        return CameraImage(jpeg: bytes, width: width, height: height)
    }

    /// Luma, and the two color differences with half the columns.
    private struct Planes {
        var luma: [UInt8] = []
        var blue: [UInt8] = []
        var red: [UInt8] = []

        init(_ yuyv: [UInt8], _ format: CameraNode.Format) {
            let pixels = format.width * format.height
            luma.reserveCapacity(pixels)
            blue.reserveCapacity(pixels / 2)
            red.reserveCapacity(pixels / 2)
            let (light, color) = (Self.lumaTable(format.isFullRange), Self.colorTable(format.isFullRange))
            for row in 0..<format.height {
                let start = row * format.stride
                for index in Swift.stride(from: start, to: start + 2 * format.width, by: 4) {
                    luma.append(light[Int(yuyv[index])])
                    blue.append(color[Int(yuyv[index + 1])])
                    luma.append(light[Int(yuyv[index + 2])])
                    red.append(color[Int(yuyv[index + 3])])
                }
            }
        }

        /// ITU-R BT.601, 2.5.3: luma has 220 levels from 16, a color difference 225 levels around 128.
        private static func lumaTable(_ isFullRange: Bool) -> [UInt8] {
            table(isFullRange, zero: 16, levels: 219, at: 0)
        }
        private static func colorTable(_ isFullRange: Bool) -> [UInt8] {
            table(isFullRange, zero: 128, levels: 224, at: 128)
        }

        private static func table(_ isFullRange: Bool, zero: Double, levels: Double, at base: Double) -> [UInt8] {
            (0...255).map { level in
                guard !isFullRange else { return UInt8(level) }
                return UInt8(min(max((Double(level) - zero) * 255 / levels + base, 0), 255).rounded())
            }
        }
    }

    // MARK: Gray

    /// Decodes the image to one byte of luma for each pixel, the rows from top to bottom.
    static func gray(_ image: CameraImage) throws(Damage) -> [UInt8] {
        let instance = try Instance(tjInitDecompress())
        let (width, height, _) = try size(image.bytes, instance)
        guard (width, height) == (image.width, image.height) else { throw Damage(reason: "another size") }
        var pixels = [UInt8](repeating: 0, count: width * height)
        let status = tjDecompress2(
            instance.handle, image.bytes, UInt(image.bytes.count), &pixels, Int32(width), Int32(width), Int32(height),
            Int32(TJPF_GRAY.rawValue), TJFLAG_LIMITSCANS)
        guard status == 0 || tjGetErrorCode(instance.handle) == TJERR_WARNING.rawValue else {
            throw Damage(reason: instance.message)
        }
        return pixels
    }
}
