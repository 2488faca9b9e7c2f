/* A lock on a file, by the operating system: flock(), or LockFileEx() on Windows. The lock is on
 * the file, not on its name, so that symbolic and hard links are one account. The system releases
 * it when its holder ends for any reason.
 *
 * The creator of a file waits for its lock, which others hold only until they have seen that it is
 * empty. A file that replaced the locked one while it was opened is not used.
 *
 * On Windows others cannot read a locked range, so the lock is on one byte far beyond the end. */
#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "release/file_lock.h"

#if defined(_WIN32)

static HANDLE open_file(const wchar_t *path, DWORD what) {
    return CreateFileW(path, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL,
                       what, FILE_ATTRIBUTE_NORMAL, NULL);
}

enum file_lock_answer file_lock_take(const char *path, int create, struct file_lock *lock) {
    wchar_t wide[4096];
    if (!MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, 4096)) return FILE_FAILED;
    HANDLE file = create ? open_file(wide, CREATE_NEW) : INVALID_HANDLE_VALUE;
    const int created = file != INVALID_HANDLE_VALUE;
    if (!created) file = open_file(wide, OPEN_EXISTING);
    if (file == INVALID_HANDLE_VALUE) return FILE_FAILED;
    OVERLAPPED range = {0};
    range.OffsetHigh = 0x40000000;
    const DWORD how = LOCKFILE_EXCLUSIVE_LOCK | (created ? 0 : LOCKFILE_FAIL_IMMEDIATELY);
    if (!LockFileEx(file, how, 0, 1, 0, &range)) {
        const int busy = GetLastError() == ERROR_LOCK_VIOLATION;
        CloseHandle(file);
        return busy ? FILE_BUSY : FILE_FAILED;
    }
    *lock = (struct file_lock){(long long)(intptr_t)file, (long long)GetCurrentProcessId()};
    return created ? FILE_LOCKED_NEW : FILE_LOCKED;
}

void file_lock_release(struct file_lock *lock) {
    HANDLE file = (HANDLE)(intptr_t)lock->file;
    FlushFileBuffers(file);
    CloseHandle(file);
}

#else

static int is_still(int file, const char *path) {
    struct stat opened, named;
    return fstat(file, &opened) == 0 && stat(path, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

enum file_lock_answer file_lock_take(const char *path, int create, struct file_lock *lock) {
    int file = create ? open(path, O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL, 0666) : -1;
    const int created = file >= 0;
    if (!created) file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return FILE_FAILED;
    int failed;
    do failed = flock(file, created ? LOCK_EX : LOCK_EX | LOCK_NB);
    while (failed && errno == EINTR);
    if (failed || !is_still(file, path)) {
        const int busy = !failed || errno == EWOULDBLOCK;
        close(file);
        return busy ? FILE_BUSY : FILE_FAILED;
    }
    *lock = (struct file_lock){file, getpid()};
    return created ? FILE_LOCKED_NEW : FILE_LOCKED;
}

void file_lock_release(struct file_lock *lock) {
    const int file = (int)lock->file;
    if (lock->owner == getpid()) {
        fsync(file);
        flock(file, LOCK_UN); /* forks have the descriptor, too */
    }
    close(file);
}

#endif
