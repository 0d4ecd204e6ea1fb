// A small ray tracer: spheres, one light, mirror reflections. A sphere is (x, y, z, radius).

#ifndef BOUNCES
#define BOUNCES 1
#endif
#define FAR 1.0e30f

// Distance along a ray to a sphere, or FAR where it misses.
static float hit_distance(float4 sphere, float3 origin, float3 direction) {
  float3 to_centre = sphere.xyz - origin;
  float along = dot(to_centre, direction);
  float inside = along * along - dot(to_centre, to_centre) + sphere.w * sphere.w;
  if (inside < 0.0f)
    return FAR;
  float distance = along - sqrt(inside);
  return distance > 1.0e-3f ? distance : FAR;
}

// What follows is written once and used for spheres in global and in local memory.
#define DEFINE_TRACE(NAME, SPACE)                                                                   \
  static float NAME(SPACE const float4 *spheres, int num_spheres, float3 origin, float3 direction) { \
    float3 light = (float3)(0.48f, 0.6f, -0.64f);                                                   \
    float brightness = 0.0f;                                                                        \
    float share = 1.0f;                                                                             \
    for (int bounce = 0; bounce <= BOUNCES; ++bounce) {                                             \
      float nearest = FAR;                                                                          \
      int hit = -1;                                                                                 \
      for (int s = 0; s < num_spheres; ++s) {                                                       \
        float distance = hit_distance(spheres[s], origin, direction);                               \
        if (distance < nearest) {                                                                   \
          nearest = distance;                                                                       \
          hit = s;                                                                                  \
        }                                                                                           \
      }                                                                                             \
      if (hit < 0) {                                                                                \
        brightness += share * 0.2f * (1.0f + direction.y);                                          \
        break;                                                                                      \
      }                                                                                             \
      origin += nearest * direction;                                                                \
      float3 normal = (origin - spheres[hit].xyz) / spheres[hit].w;                                 \
      float lambert = fmax(dot(normal, light), 0.0f);                                               \
      if (lambert > 0.0f)                                                                           \
        for (int s = 0; s < num_spheres; ++s)                                                       \
          if (hit_distance(spheres[s], origin, light) < FAR) {                                      \
            lambert = 0.0f;                                                                         \
            break;                                                                                  \
          }                                                                                         \
      brightness += share * (0.1f + 0.6f * lambert);                                                \
      share *= 0.5f;                                                                                \
      direction -= 2.0f * dot(direction, normal) * normal;                                          \
    }                                                                                               \
    return brightness;                                                                              \
  }

DEFINE_TRACE(trace_global, global)
DEFINE_TRACE(trace_local, local)

// Direction of the ray through a pixel.
static float3 pixel_direction(int x, int y, int width, int height) {
  float scale = 2.0f / (float)height;
  return normalize((float3)(((float)x - 0.5f * (float)width) * scale, (0.5f * (float)height - (float)y) * scale, 1.5f));
}

// All spheres read from global memory by every ray.
kernel void trace_spheres(global const float4 *restrict spheres, global float *restrict image, int num_spheres,
                          int width, int height) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  image[y * width + x] =
      trace_global(spheres, num_spheres, (float3)(0.0f, 0.0f, -4.0f), pixel_direction(x, y, width, height));
}

// The spheres staged in local memory first.
kernel void trace_spheres_local(global const float4 *restrict spheres, global float *restrict image,
                                local float4 *restrict staged, int num_spheres, int width, int height) {
  int lane = get_local_id(1) * get_local_size(0) + get_local_id(0);
  for (int s = lane; s < num_spheres; s += get_local_size(0) * get_local_size(1))
    staged[s] = spheres[s];
  barrier(CLK_LOCAL_MEM_FENCE);
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  image[y * width + x] =
      trace_local(staged, num_spheres, (float3)(0.0f, 0.0f, -4.0f), pixel_direction(x, y, width, height));
}
