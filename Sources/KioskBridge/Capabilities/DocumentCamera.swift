import Foundation
import Waiting

extension BridgeHost {
    /// Takes the pictures of documents with a camera of this machine, and tells pages when one comes or goes.
    ///
    /// Nothing is written to the disk.  The watch ends with the host.
    ///
    /// - Parameter capture: takes a picture.
    public func useDocumentCamera(_ capture: CameraCapture = CameraCapture()) {
        documentCapture.handler = { _ in
            do {
                let (image, quality) = try await capture.documentImage()
                return .document(
                    DocumentCaptureResult(
                        imageData: Data(image.bytes), width: image.width, height: image.height,
                        mimeType: image.mimeType,
                        quality: [
                            "sharpness": quality.sharpness, "glare": quality.glare, "coverage": quality.coverage,
                        ]))
            } catch is CancellationError {
                return .cancelled(reason: "the page is gone")
            } catch let error as CameraError {
                return .failure(BridgeErrorPayload(error))
            } catch {
                return .failure(.init(.internalError, "the camera failed: \(loggable(error))"))
            }
        }
        let changes = DeviceFolder.changes()
        watches.append(
            Task { [weak self] in
                await self?.take(capture.look())
                for await _ in changes {
                    // Permissions are set after a file has come.
                    try? await Time.sleep(for: .milliseconds(200))
                    await self?.take(capture.look())
                }
            })
    }

    private func take(_ result: CameraDetector.Result) {
        if documentCapture.isEnabled != result.hardwareAvailable {
            documentCapture.isEnabled = result.hardwareAvailable
        }
        if documentCapture.permissionState != result.permissionState {
            documentCapture.permissionState = result.permissionState
        }
    }
}

extension BridgeErrorPayload {
    /// The answer to a request for a picture that was not taken.
    init(_ error: CameraError) {
        switch error {
        case .noCamera: self.init(.unsupported, error.description)
        case .notPermitted: self.init(.permissionDenied, error.description)
        case .inUse: self.init(.busy, error.description)
        case .timedOut, .corruptFrames: self.init(.timeout, error.description)
        case .disconnected:
            self.init(code: "CAMERA_DISCONNECTED", message: error.description, recoverable: true)
        case .noUsableFormat, .malformedAnswer, .failed:
            self.init(code: BridgeErrorCode.internalError.rawValue, message: error.description, recoverable: true)
        }
    }
}
