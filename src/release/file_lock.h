#ifndef NOISEAWARE_RELEASE_FILE_LOCK_H
#define NOISEAWARE_RELEASE_FILE_LOCK_H

/* A lock that one holder has on a file; see release/file_lock.c. */

struct file_lock {
    long long file;  /* descriptor or handle */
    long long owner; /* the process that took it */
};

enum file_lock_answer {
    FILE_LOCKED,
    FILE_LOCKED_NEW, /* the file was not there, and is empty */
    FILE_BUSY,       /* another holder has it, or another file has its name by now */
    FILE_FAILED      /* no such file, no permission, or no locks on that file system */
};

/* `path` in UTF-8 on Windows, else as the system takes it. `create`: where there is no file. Does
 * not wait for another holder. */
enum file_lock_answer file_lock_take(const char *path, int create, struct file_lock *lock);

/* What was written to the file is on the disk when this returns. In a fork of the process that took
 * the lock nothing but the fork's own descriptor is given back. */
void file_lock_release(struct file_lock *lock);

#endif
