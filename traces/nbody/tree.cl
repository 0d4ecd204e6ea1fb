// Gravity by a tree: nodes of a complete binary tree hold x, y, z and mass; node k has children 2k + 1 and 2k + 2.

// Walks the tree without a stack and skips the children of nodes that look small from the body.
__kernel void tree_walk(
    __global const float4 *bodies, __global const float4 *nodes, __global float4 *accelerations, int n, int num_nodes,
    float opening2, float softening)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    float4 here = bodies[i];
    float4 sum = (float4)(0.0f);
    int node = 0;
    float size2 = 1.0f;
    do {
        float4 there = nodes[node];
        float dx = there.x - here.x;
        float dy = there.y - here.y;
        float dz = there.z - here.z;
        float r2 = dx * dx + dy * dy + dz * dz + softening;
        if (size2 > opening2 * r2 && 2 * node + 2 < num_nodes) {
            node = 2 * node + 1;
            size2 *= 0.63f;
        } else {
            float inverse = rsqrt(r2);
            float strength = there.w * size2 * inverse * inverse * inverse;
            sum += (float4)(dx * strength, dy * strength, dz * strength, 1.0f);
            while (node > 0 && (node & 1) == 0) {
                node = (node - 1) / 2;
                size2 /= 0.63f;
            }
            if (node > 0)
                ++node;
        }
    } while (node > 0);
    accelerations[i] = sum;
}
