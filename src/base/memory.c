/* Memory for plug-ins, from whoever calls them: a program without R defines host_allocate()
 * (tools/standalone.c does). */
#include "base/memory.h"

/* Starts a cache line: a vector that lies across two takes twice as long to store. */
void *plugin_memory(size_t count, size_t size) {
    enum { LINE = 64 };
    const size_t bytes = (count > 0 ? count : 1) * size;
    char *memory = host_allocate(bytes + LINE - 1);
    memory += (LINE - (uintptr_t)memory % LINE) % LINE;
    memset(memory, 0, bytes);
    return memory;
}
