/// The files of the example page, by path.
package enum KioskPage {}
