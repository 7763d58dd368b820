// swift-format-ignore-file
import KioskKit
import Observation

@Observable
@MainActor
class ReaderSessionManager {
    private var session: PaymentCardReaderSession?
    private var scenePhaseTask: Task<Void, Never>?
    
    /// Call from SwiftUI's .onChange(of: scenePhase)
    func handleScenePhase(_ phase: ScenePhase) {
        switch phase {
        case .active:
            // CRITICAL: Re-prepare when returning to foreground
            Task {
                do {
                    try await session?.prepare()
                } catch {
                    // Handle re-preparation failure
                }
            }
        case .background:
            // Session is automatically invalidated by the system
            // No action needed, but prepare() is required on return
            break
        default:
            break
        }
    }
}
